package find

import (
	"fmt"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/disk/internal/memtable"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const benchSpans = 100_000

// benchTable returns a memtable with traces of 20 spans, of 40 services with 23 operations each.
func benchTable(b *testing.B) *memtable.Table {
	b.Helper()
	t := memtable.New(memtable.Options{})
	for first := 0; first < benchSpans; first += 1000 {
		td := ptrace.NewTraces()
		scopes := make([]ptrace.ScopeSpans, 40)
		for i := range scopes {
			rs := td.ResourceSpans().AppendEmpty()
			rs.Resource().Attributes().PutStr("service.name", fmt.Sprint("service-", i))
			scopes[i] = rs.ScopeSpans().AppendEmpty()
		}
		for n := first; n < first+1000; n++ {
			s := scopes[n*7919%40].Spans().AppendEmpty()
			trace := n / 20
			s.SetTraceID(pcommon.TraceID{0: byte(trace * 31), 13: byte(trace >> 16), 14: byte(trace >> 8), 15: byte(trace)})
			s.SetSpanID(pcommon.SpanID{4: byte(n >> 24), 5: byte(n >> 16), 6: byte(n >> 8), 7: byte(n)})
			s.SetName(fmt.Sprint("operation ", n*31%23))
			s.SetStartTimestamp(pcommon.Timestamp(scantest.Start + uint64(n)*1000))
			s.SetEndTimestamp(s.StartTimestamp() + pcommon.Timestamp(1+n%1000)*1e6)
			s.Attributes().PutStr("url.path", fmt.Sprint("/cart/", n%50))
			s.Attributes().PutStr("order.id", fmt.Sprintf("order-%x", n*2654435761))
			s.Attributes().PutInt("http.status_code", int64(200+n%100/99*300))
			s.Attributes().PutInt("user", int64(n))
		}
		if _, err := t.Append(scantest.Encode(b, td), 0); err != nil {
			b.Fatal(err)
		}
	}
	return t
}

func benchQueries() map[string]tracestore.Query {
	text, number := tracestore.Text, tracestore.Number
	service := scantest.Property(tracestore.Service, tracestore.Eq, text("service-7"))
	operation := scantest.Property(tracestore.Name, tracestore.Eq, text("operation 7"))
	unique := text(fmt.Sprintf("order-%x", 50_000*2654435761))
	return map[string]tracestore.Query{
		"newest":              {Limit: 20},
		"service":             {Limit: 20, Where: service},
		"service+operation":   {Limit: 20, Where: tracestore.And{service, operation}},
		"unique text":         {Limit: 20, Where: scantest.Attribute(tracestore.Eq, "order.id", unique)},
		"absent text":         {Limit: 20, Where: scantest.Attribute(tracestore.Eq, "order.id", text("order-none"))},
		"number, every block": {Limit: 20, Where: scantest.Attribute(tracestore.Eq, "user", number(-1))},
		"word":                {Limit: 20, Where: scantest.Attribute(tracestore.Eq, "url.path", text("/cart/49"))},
		"service+duration":    {Limit: 20, Where: tracestore.And{service, scantest.Property(tracestore.Duration, tracestore.Gt, number(990e6))}},
	}
}

func benchFind(b *testing.B, src source.Source, want tracestore.Want) {
	e := New(scan.NewStore(func() scan.View { return scantest.Sources{src} }, scan.Options{}))
	for name, q := range benchQueries() {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			scanned := 0
			for b.Loop() {
				res, err := e.Find(b.Context(), q, want)
				scantest.Must(err)
				for _, err := range res.All {
					scantest.Must(err)
				}
				scanned = res.Outcome().Scanned
			}
			b.ReportMetric(float64(scanned), "scanned/op")
		})
	}
}

func benchSegment(b *testing.B) source.Source {
	b.Helper()
	in, fsys := benchTable(b).Input(), vfstest.NewMem()
	_, err := segment.Write(fsys, "segment", segment.Input{Tables: in.Tables, Rows: in.Rows, Row: in.Row}, segment.Meta{}, segment.Options{})
	scantest.Must(err)
	s, err := segment.Open(fsys, "segment")
	scantest.Must(err)
	b.Cleanup(func() { _ = s.Close() })
	return s
}

func BenchmarkFindMemtable(b *testing.B) {
	benchFind(b, benchTable(b).Source(), tracestore.WantIDs)
}

func BenchmarkFindSegment(b *testing.B) { benchFind(b, benchSegment(b), tracestore.WantIDs) }

func BenchmarkFindSegmentFull(b *testing.B) { benchFind(b, benchSegment(b), tracestore.WantFull) }

// BenchmarkTraces reads a trace by its id.
func BenchmarkTraces(b *testing.B) {
	src := benchSegment(b)
	e := New(scan.NewStore(func() scan.View { return scantest.Sources{src} }, scan.Options{}))
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		trace := n % (benchSpans / 20)
		id := otlpdata.TraceID{0: byte(trace * 31), 13: byte(trace >> 16), 14: byte(trace >> 8), 15: byte(trace)}
		for t, err := range e.Traces(b.Context(), "", []tracestore.TraceRef{{ID: id}}) {
			if scantest.Must(err); t.Spans.Len() != 20 {
				b.Fatal(t.Spans.Len())
			}
		}
	}
}

// BenchmarkPlan binds a query to all shapes of a source.
func BenchmarkPlan(b *testing.B) {
	src := benchSegment(b)
	t, err := src.Tables()
	scantest.Must(err)
	q := scan.Compile(benchQueries()["service+operation"])
	for b.Loop() {
		p := scan.NewPlan(q, src, t)
		p.EnterUnknownBlock()
		for shape := range t.Shapes {
			p.Program(uint32(shape), scan.AnyDuration)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(t.Shapes)), "ns/shape")
}
