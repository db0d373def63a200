// Package otlpdata is the payload of every pipeline: one OTLP trace request, kept as encoded bytes,
// as pdata objects, or as both.
//
// A [Batch] is made from either form and derives the other on demand, once. It is immutable, so
// that fan-out, retries and queues share one value without copies. [Walk] is the only reader of the
// OTLP wire format in this project: [FromOTLP] uses it to validate and count, stores use it to read
// spans. It accepts the same messages as the unmarshaler of go.opentelemetry.io/collector/pdata,
// except for groups, which pdata reads wrongly, and numbers that protobuf does not allow. It also
// applies [Limits], and builds no objects.
//
//	bytes ──FromOTLP──▶ Batch ──Chunks────▶ bytes   (no copy)
//	                      │ └───Walk──────▶ Visitor (no allocation per span)
//	objects ─FromTraces─▶ └─────Traces────▶ objects (built once)
//
// Spans that need repair (no service name, empty name, end before start, invalid UTF-8) are never
// rewritten in stored bytes. Readers and indexers apply the rules in repair.go.
package otlpdata
