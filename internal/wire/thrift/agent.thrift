// What an agent takes in over UDP: one message in one datagram, without an answer.
namespace go agentthrift

include "native.thrift"
include "zipkincore.thrift"

// Agent takes spans from clients on its own host.
service Agent {
  // Spans in Zipkin's first model.
  oneway void emitZipkinBatch(1: list<zipkincore.Span> spans)
  // Spans in the native model.
  oneway void emitBatch(1: native.Batch batch)
}
