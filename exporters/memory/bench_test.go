package memory

import (
	"fmt"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	benchBase     = 1_700_000_000_000_000_000
	spansPerTrace = 16
)

// ordinary returns a request with typical traces: 16 spans in four services. Each span has nine
// attributes; one of them is unique for the span and one for the trace. The numbers of traces begin
// at first.
func ordinary(first, traces int) ptrace.Traces {
	td := ptrace.NewTraces()
	var scopes []ptrace.ScopeSpans
	for i := range 4 {
		rs := td.ResourceSpans().AppendEmpty()
		for _, k := range []string{"host.name", "k8s.pod.name", "telemetry.sdk.language", "deployment.environment.name"} {
			rs.Resource().Attributes().PutStr(k, fmt.Sprintf("%s of service %d", k, i))
		}
		rs.Resource().Attributes().PutStr("service.name", fmt.Sprintf("service-%d", i))
		ss := rs.ScopeSpans().AppendEmpty()
		ss.Scope().SetName("go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp")
		scopes = append(scopes, ss)
	}
	for t := first; t < first+traces; t++ {
		for i := range spansPerTrace {
			s := scopes[i%4].Spans().AppendEmpty()
			id := uint64(t*spansPerTrace + i + 1)
			s.SetTraceID(pcommon.TraceID(otlpdata.TraceID{0: byte(t), 1: byte(t >> 8), 2: byte(t >> 16), 15: 1}))
			s.SetSpanID(pcommon.SpanID{0: byte(id), 1: byte(id >> 8), 2: byte(id >> 16), 3: byte(id >> 24), 7: 1})
			s.SetName(fmt.Sprintf("GET /path/%d", i))
			s.SetKind(ptrace.SpanKind(1 + i%5))
			s.SetStartTimestamp(pcommon.Timestamp(benchBase + t*1_000_000 + i*1000))
			s.SetEndTimestamp(s.StartTimestamp() + 50_000)
			for _, k := range []string{"http.request.method", "url.path", "server.address", "user_agent.original"} {
				s.Attributes().PutStr(k, "a value of ordinary size, seen often")
			}
			s.Attributes().PutInt("http.response.status_code", int64(200+t%2))
			s.Attributes().PutBool("cached", i%2 == 0)
			s.Attributes().PutInt("bucket", int64(t%100))
			s.Attributes().PutStr("user.id", fmt.Sprintf("user-%d", t))
			s.Attributes().PutStr("request.id", fmt.Sprintf("request-%d", id))
		}
	}
	return td
}

func batch(tb testing.TB, tenant string, td ptrace.Traces) *otlpdata.Batch {
	tb.Helper()
	enc, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		tb.Fatal(err)
	}
	b, err := otlpdata.FromOTLP(enc, otlpdata.Meta{Tenant: tenant}, otlpdata.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func consume(tb testing.TB, e *exporter, b *otlpdata.Batch) {
	tb.Helper()
	if err := e.Consume(tb.Context(), b); err != nil {
		tb.Fatal(err)
	}
}

// BenchmarkConsume stores requests of 512 spans in a large store and in a full store.
func BenchmarkConsume(b *testing.B) {
	const tracesPerRequest, large, small = 32, 1 << 40, 24 << 20
	var batches []*otlpdata.Batch
	for i := range 300 {
		batches = append(batches, batch(b, "", ordinary(i*tracesPerRequest, tracesPerRequest)))
	}
	for _, c := range []struct {
		name    string
		limit   int64
		prefill int // batches
	}{{"large", large, 0}, {"full", small, 100}} {
		b.Run(c.name, func(b *testing.B) {
			var e *exporter
			next := len(batches)
			b.ReportAllocs()
			for b.Loop() {
				if next == len(batches) { // the same spans again would be duplicates
					b.StopTimer()
					e, _ = open(b, 0)
					e.maxBytes = c.limit
					for next = 0; next < c.prefill; next++ {
						consume(b, e, batches[next])
					}
					b.StartTimer()
				}
				consume(b, e, batches[next])
				next++
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(tracesPerRequest*spansPerTrace), "ns/span")
			b.ReportMetric(float64(e.usage.bytes)/float64(e.usage.spans), "bytes/span")
		})
	}
}

// BenchmarkFind shows that the time of a search depends on its results and not on the size of the
// store.
func BenchmarkFind(b *testing.B) {
	eq := func(p tracestore.Place, key, text string) tracestore.Cond {
		return tracestore.Cond{Field: tracestore.Field{Place: p, Key: key}, Value: tracestore.Text(text)}
	}
	queries := map[string]tracestore.Expr{
		"service":   eq(tracestore.Service, "", "service-1"),
		"operation": tracestore.And{eq(tracestore.Service, "", "service-1"), eq(tracestore.Name, "", "GET /path/5")},
		"unique":    tracestore.And{eq(tracestore.Service, "", "service-1"), eq(tracestore.AnyAttribute, "user.id", "user-77")},
		"absent":    eq(tracestore.AnyAttribute, "user.id", "unknown"),
		"resource":  eq(tracestore.ResourceAttribute, "host.name", "host.name of service 2"),
	}
	for _, traces := range []int{1000, 10_000} {
		e, _ := open(b, 0)
		e.maxBytes = 1 << 40
		for t := 0; t < traces; t += 100 {
			consume(b, e, batch(b, "", ordinary(t, 100)))
		}
		for name, where := range queries {
			b.Run(fmt.Sprintf("%s/traces=%d", name, traces), func(b *testing.B) {
				var scanned int
				for b.Loop() {
					res, err := e.Find(b.Context(), tracestore.Query{Where: where, Limit: 20}, tracestore.WantIDs)
					if err != nil {
						b.Fatal(err)
					}
					for _, err := range res.All {
						if err != nil {
							b.Fatal(err)
						}
					}
					scanned = res.Outcome().Scanned
				}
				b.ReportMetric(float64(scanned), "examined/op")
			})
		}
	}
}
