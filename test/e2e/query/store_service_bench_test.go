package query_test

import (
	"net"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// countingProxy forwards connections to an address and counts the bytes in both directions.
func countingProxy(tb testing.TB, to string) (addr string, transferred *atomic.Int64) {
	tb.Helper()
	ln, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = ln.Close() })
	transferred = new(atomic.Int64)
	forward := func(dst, src net.Conn) {
		defer dst.Close() //nolint:errcheck // the other direction reports it
		buf := make([]byte, 64<<10)
		for {
			n, err := src.Read(buf)
			transferred.Add(int64(n))
			if _, werr := dst.Write(buf[:n]); err != nil || werr != nil {
				return
			}
		}
	}
	go func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			go forward(out, in)
			go forward(in, out)
		}
	}()
	return ln.Addr().String(), transferred
}

// benchSpans returns traces with spans of several services.
func benchSpans(traces, spansPerTrace int, start time.Time) *otlpdata.Batch {
	td := ptrace.NewTraces()
	services := []string{"frontend", "checkout", "payment", "inventory", "shipping"}
	var scopes []ptrace.ScopeSpans
	for _, s := range services {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", s)
		rs.Resource().Attributes().PutStr("host.name", "node-17.example.com")
		scopes = append(scopes, rs.ScopeSpans().AppendEmpty())
	}
	for t := range traces {
		for i := range spansPerTrace {
			s := scopes[i%len(scopes)].Spans().AppendEmpty()
			s.SetTraceID([16]byte{1, 14: byte(t >> 8), 15: byte(t)})
			s.SetSpanID([8]byte{5: byte(i >> 16), 6: byte(i >> 8), 7: byte(i + 1)})
			if i > 0 {
				s.SetParentSpanID([8]byte{5: byte((i / 2) >> 16), 6: byte((i / 2) >> 8), 7: byte(i/2 + 1)})
			}
			s.SetName([]string{"GET /api/cart", "POST /api/checkout", "SELECT orders", "publish"}[i%4])
			s.SetKind(ptrace.SpanKind(1 + i%5))
			at := start.Add(time.Duration(t)*time.Second + time.Duration(i)*time.Millisecond)
			s.SetStartTimestamp(pcommon.NewTimestampFromTime(at))
			s.SetEndTimestamp(pcommon.NewTimestampFromTime(at.Add(time.Duration(1+i%97) * time.Millisecond)))
			s.Attributes().PutStr("http.request.method", []string{"GET", "POST", "PUT"}[i%3])
			s.Attributes().PutInt("http.response.status_code", int64(200+i%7))
			s.Attributes().PutStr("user.id", time.Duration(i%500).String())
		}
	}
	return otlpdata.FromTraces(td, otlpdata.Meta{})
}

// cpuTime returns the CPU time of both ends.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkStoreService measures the main calls of the store service, and the bytes that they
// transfer in both directions.
func BenchmarkStoreService(b *testing.B) {
	addr, transferred := countingProxy(b, serveStore(b, "disk", ""))
	s := useStore(b, addr, "")
	start := time.Now().Add(-time.Hour)
	for _, batch := range []*otlpdata.Batch{benchSpans(100, 20, start), benchSpans(1, 1000, start.Add(10*time.Minute))} {
		if err := s.Consume(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	store := any(s)
	find := func(want tracestore.Want, limit int) func(*testing.B) {
		return func(b *testing.B) {
			res, err := s.Find(b.Context(), tracestore.Query{From: start, Limit: limit, Where: tracestore.Cond{
				Field: tracestore.Field{Place: tracestore.Service}, Value: tracestore.Text("checkout")}}, want)
			if err != nil {
				b.Fatal(err)
			}
			for _, err := range res.All {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	aggregator, _ := tracestore.As[tracestore.Aggregator](b.Context(), "", store)
	metrics, _ := tracestore.As[tracestore.Metrics](b.Context(), "", store)
	window := tracestore.Query{From: start, To: time.Now()}
	for _, c := range []struct {
		name string
		call func(*testing.B)
	}{
		{"find20Summaries", find(tracestore.WantSummaries, 20)},
		{"find20Full", find(tracestore.WantFull, 20)},
		{"trace1000", func(b *testing.B) {
			for _, err := range s.Traces(b.Context(), "", []tracestore.TraceRef{{ID: otlpdata.TraceID{1}}}) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}},
		{"outline1000", func(b *testing.B) {
			err := s.Outline(b.Context(), "", otlpdata.TraceID{1}, 0, func(int, int) error { return nil },
				func([]tracestore.SummarySpan) error { return nil })
			if err != nil {
				b.Fatal(err)
			}
		}},
		{"facets", func(b *testing.B) {
			_, err := aggregator.Aggregate(b.Context(), window, tracestore.Aggregation{Facets: tracestore.FacetQuery{Values: 100},
				Heatmap: tracestore.HeatmapQuery{Step: 30 * time.Second}, Exemplars: 100})
			if err != nil {
				b.Fatal(err)
			}
		}},
		{"metrics", func(b *testing.B) {
			_, err := metrics.Metrics(b.Context(), "", tracestore.MetricsQuery{From: start, To: time.Now(), ByOperation: true, Step: time.Minute})
			if err != nil {
				b.Fatal(err)
			}
		}},
		{"services", func(b *testing.B) {
			if _, _, err := s.Services(b.Context(), "", tracestore.NameQuery{}); err != nil {
				b.Fatal(err)
			}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			before, cpu := transferred.Load(), cpuTime(b)
			for b.Loop() {
				c.call(b)
			}
			b.ReportMetric(float64(cpuTime(b)-cpu)/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(transferred.Load()-before)/float64(b.N), "wire-B/op")
			b.ReportAllocs()
		})
	}
}
