// Package otlpdata is the payload of every pipeline: one OTLP trace request, kept as encoded bytes, as pdata objects, or as both.
//
// A [Batch] is made from either form and derives the other on demand, once. It is immutable, so that fan-out, retries and queues
// share one value without copies. [Walk] is the one reader of the OTLP wire format in this project: [FromOTLP] uses it to validate
// and count, stores use it to read spans. It accepts and refuses exactly what the unmarshaler of
// go.opentelemetry.io/collector/pdata does, plus the limits of [Limits], and builds no objects.
//
//	bytes ──FromOTLP──▶ Batch ──Segments──▶ bytes   (no copy)
//	                      │ └───Walk──────▶ Visitor (no allocation per span)
//	objects ─FromTraces─▶ └─────Traces────▶ objects (built once)
//
// What needs mending in a span (no service name, empty name, end before start, invalid UTF-8) is never rewritten in stored bytes:
// readers and indexers call the rules in mend.go.
package otlpdata
