package otlpdata

import (
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

func sample(n int) []byte {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "cart")
	rs.Resource().Attributes().PutStr("host.name", "h1")
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName("lib")
	for i := range n {
		s := ss.Spans().AppendEmpty()
		s.SetTraceID([16]byte{1, 2, 3, byte(i)})
		s.SetSpanID([8]byte{1, byte(i)})
		s.SetParentSpanID([8]byte{1, byte(i / 2)})
		s.SetName("GET /cart/items")
		s.SetKind(2)
		s.SetStartTimestamp(1700000000000000000)
		s.SetEndTimestamp(1700000000100000000)
		for _, k := range []string{"http.request.method", "url.path", "server.address", "user_agent.original", "db.statement", "enduser.id"} {
			s.Attributes().PutStr(k, "some value of ordinary size")
		}
		s.Attributes().PutInt("http.response.status_code", 200)
		s.Attributes().PutInt("retries", 1000000)
		s.Attributes().PutBool("cached", true)
		if i%10 == 0 {
			e := s.Events().AppendEmpty()
			e.SetName("exception")
			e.Attributes().PutStr("exception.message", "boom")
		}
	}
	b, _ := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	return b
}

func BenchmarkPdata(b *testing.B) {
	data := sample(512)
	b.ReportAllocs()
	for b.Loop() {
		r := ptraceotlp.NewExportRequest()
		r.UnmarshalProto(data)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/512, "ns/span")
}

func BenchmarkWalk(b *testing.B) {
	data := sample(512)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := FromOTLP(data, Meta{}, Limits{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/512, "ns/span")
}
