// Package otelcol runs components of the OpenTelemetry Collector: Processor, Receiver and Exporter
// make a [pipeline.Factory] of a factory of the Collector.
//
//	otelcol.Processor(groupbyattrsprocessor.NewFactory())
package otelcol
