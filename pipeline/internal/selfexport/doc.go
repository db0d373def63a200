// Package selfexport makes the spans of self-tracing with the OpenTelemetry SDK and exports them,
// as configured in service.telemetry.traces. The keys are the same as in the OpenTelemetry
// Collector.
package selfexport
