// Package selftrace makes the spans that a process records about its own work: requests of clients,
// what the pipelines do with their spans, and queries of the store. Self-tracing is off unless
// service.telemetry.traces has a processor. While it is off, a [Tracer] does nothing and allocates
// nothing.
//
// The trace of a request begins in the listener, with [Tracer.Request]. Its span is made when the
// first part of the work or the response needs it. Until then, [Tracer.StartIntake] can prevent it:
// a batch that consists of spans of self-tracing ([IsOwn]) is not traced, because the spans about
// it would be exported, received and traced in an endless loop.
package selftrace
