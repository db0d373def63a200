// Package otelcol runs components of the OpenTelemetry Collector: [Processor], [Receiver] and
// [Exporter] make a [pipeline.Factory] of a factory of the Collector.
//
//	app.Main(append(tracing.Components(),
//		otelcol.Processor(groupbyattrsprocessor.NewFactory()),
//	), tracing.Presets()...)
//
// The component decodes and checks its own configuration ([Config]), and its spans are pdata
// objects, which a Batch is made of and from. docs/collector-components.md says what holds for such
// components and what does not.
package otelcol
