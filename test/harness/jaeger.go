package harness

import (
	"context"
	bin "encoding/binary"
	"testing"

	"github.com/apache/thrift/lib/go/thrift"
	"github.com/jaegertracing/jaeger-idl/thrift-gen/agent"
	"github.com/jaegertracing/jaeger-idl/thrift-gen/jaeger"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// JaegerBatch translates the spans of the first scope of the first resource: ids, name, start and
// duration.
func JaegerBatch(td ptrace.Traces) *jaeger.Batch {
	rs := td.ResourceSpans().At(0)
	service, _ := rs.Resource().Attributes().Get("service.name")
	b := &jaeger.Batch{Process: &jaeger.Process{ServiceName: service.Str()}}
	for _, s := range rs.ScopeSpans().At(0).Spans().All() {
		traceID, spanID := s.TraceID(), s.SpanID()
		b.Spans = append(b.Spans, &jaeger.Span{
			TraceIdHigh: int64(bin.BigEndian.Uint64(traceID[:8])), TraceIdLow: int64(bin.BigEndian.Uint64(traceID[8:])),
			SpanId: int64(bin.BigEndian.Uint64(spanID[:])), OperationName: s.Name(), Flags: 1,
			StartTime: int64(s.StartTimestamp() / 1000), Duration: int64((s.EndTimestamp() - s.StartTimestamp()) / 1000),
		})
	}
	return b
}

// Datagram returns the datagram that sends a batch to an agent: the message emitBatch in the
// compact protocol.
func Datagram(tb testing.TB, b *jaeger.Batch) []byte {
	tb.Helper()
	ctx, buf, args := context.Background(), thrift.NewTMemoryBuffer(), agent.AgentEmitBatchArgs{Batch: b}
	out := thrift.NewTCompactProtocolConf(buf, nil)
	for _, err := range []error{out.WriteMessageBegin(ctx, "emitBatch", thrift.ONEWAY, 0), args.Write(ctx, out), out.Flush(ctx)} {
		if err != nil {
			tb.Fatal(err)
		}
	}
	return buf.Bytes()
}
