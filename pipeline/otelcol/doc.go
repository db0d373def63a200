// Package otelcol runs components of the OpenTelemetry Collector: [Processor], [Receiver] and
// [Exporter] turn a Collector factory into a [pipeline.Factory].
//
//	app.Main(append(tracing.Components(),
//		otelcol.Processor(groupbyattrsprocessor.NewFactory()),
//	), tracing.Presets()...)
//
// The component decodes and checks its own configuration ([Config]). Its spans are pdata objects,
// which are converted from and to a Batch. docs/collector-components.md lists the differences to
// other components.
package otelcol
