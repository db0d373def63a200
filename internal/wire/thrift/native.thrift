// The native model: what clients send to the agent and, over HTTP, to the collector.
namespace go nativethrift

// TagType says which value field of a Tag counts. The numbers differ from those of the protobuf form.
enum TagType {
  STRING = 0
  DOUBLE = 1
  BOOL   = 2
  LONG   = 3
  BINARY = 4
}

// Tag is a key with a typed value. A key may occur more than once.
struct Tag {
  1: required string  key
  2: required TagType vType
  3: optional string  vStr
  4: optional double  vDouble
  5: optional bool    vBool
  6: optional i64     vLong
  7: optional binary  vBinary
}

// Log is something that happened during a span.
struct Log {
  // Microseconds since the epoch.
  1: required i64       timestamp
  2: required list<Tag> fields
}

// SpanRefType says how a span depends on the one that it refers to.
enum SpanRefType {
  CHILD_OF     = 0
  FOLLOWS_FROM = 1
}

// SpanRef refers from a span to another one, of any trace.
struct SpanRef {
  1: required SpanRefType refType
  2: required i64         traceIdLow
  3: required i64         traceIdHigh
  4: required i64         spanId
}

// Span is a piece of work with a begin and a duration.
struct Span {
  // The less significant half of the trace id.
  1: required i64 traceIdLow
  // Zero for ids of 64 bits.
  2: required i64 traceIdHigh
  3: required i64 spanId
  // Zero if there is none. The references need not name the parent again.
  4: required i64 parentSpanId
  5: required string operationName
  6: optional list<SpanRef> references
  // Bits: 1 sampled, 2 debug.
  7: required i32 flags
  // Microseconds since the epoch.
  8: required i64 startTime
  // Microseconds.
  9: required i64 duration
  10: optional list<Tag> tags
  11: optional list<Log> logs
}

// Process is what emitted the spans of a batch.
struct Process {
  1: required string    serviceName
  2: optional list<Tag> tags
}

// ClientStats counts spans that a client lost, from its start on.
struct ClientStats {
  // The client's queue was full.
  1: required i64 fullQueueDroppedSpans
  // They alone were more than fits into a packet.
  2: required i64 tooLargeDroppedSpans
  // Sending them failed.
  3: required i64 failedToEmitSpans
}

// Batch is spans of one process.
struct Batch {
  1: required Process     process
  2: required list<Span>  spans
  // The number of the batch of its client, from 1.
  3: optional i64         seqNo
  4: optional ClientStats stats
}
