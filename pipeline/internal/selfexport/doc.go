// Package selfexport makes the spans of self-tracing with the OpenTelemetry SDK and exports them,
// as service.telemetry.traces says. The keys are those of the OpenTelemetry Collector.
package selfexport
