package tracing_test

import (
	"context"
	bin "encoding/binary"
	"net"
	"testing"

	"github.com/jaegertracing/jaeger-idl/thrift-gen/jaeger"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/pipelinetest"
	"github.com/tracing-backend/tracing/receivers/thriftudp"
)

func thriftUDPReceiver(t *testing.T) {
	pipelinetest.Receiver(t, thriftudp.Factory(), pipelinetest.ReceiverOptions{
		Config:     `compact: {endpoint: "localhost:0"}`,
		Listener:   "compact",
		Unanswered: true,
		Send: func(ctx context.Context, addr string, td ptrace.Traces) error {
			conn, err := new(net.Dialer).DialContext(ctx, "udp", addr)
			if err != nil {
				return err
			}
			defer conn.Close()
			_, err = conn.Write(udpDatagram(t, udpBatch(td)))
			return err
		},
	})
}

// udpBatch is what the suite's requests look like in the native model.
func udpBatch(td ptrace.Traces) *jaeger.Batch {
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
