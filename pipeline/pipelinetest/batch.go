package pipelinetest

import (
	"fmt"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Batch returns an encoded batch with n spans of one trace. The spans have distinct ids and names,
// two attributes, and about 150 bytes each.
func Batch(tb testing.TB, meta otlpdata.Meta, n int) *otlpdata.Batch {
	tb.Helper()
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "shop")
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	for i := range n {
		s := spans.AppendEmpty()
		s.SetName(fmt.Sprint("GET /cart/", i))
		s.SetTraceID([16]byte{1, 15: 1})
		s.SetSpanID([8]byte{1, 6: byte(i >> 8), 7: byte(i)})
		s.SetStartTimestamp(startNanos)
		s.SetEndTimestamp(startNanos + 100_000)
		s.Attributes().PutStr("http.request.method", "GET")
		s.Attributes().PutInt("http.response.status_code", 200)
	}
	encoded, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		tb.Fatal(err)
	}
	b, err := otlpdata.FromOTLP(encoded, meta, otlpdata.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}
