package search

import (
	"testing"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/memtable"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/test/bench"
)

// BenchmarkMetrics counts the spans of a memtable, and of a segment from its statistics and from its rows.
func BenchmarkMetrics(b *testing.B) {
	const spans = 400_000
	s := newCallStore(b, 1, Options{})
	s.tables[0] = memtable.New(memtable.Options{MaxBytes: 1 << 30, MaxRows: 2 * spans})
	for r := range bench.New(7, someDay).Requests(spans, 512) {
		batch, err := otlpdata.FromOTLP(r.Body, otlpdata.Meta{}, otlpdata.Limits{})
		must(err)
		_, err = s.tables[0].Append(batch, 0)
		must(err)
	}
	run := func(name string, q tracestore.MetricsQuery, src source.Source) {
		e := New(func() View { return realView{src} }, Options{})
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				a, err := e.Metrics(b.Context(), "", q)
				must(err)
				if len(a.Series) == 0 || !a.Complete {
					b.Fatalf("%d series", len(a.Series))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/spans, "ns/span")
		})
	}
	all := tracestore.MetricsQuery{ByOperation: true}
	one := tracestore.MetricsQuery{Services: bench.New(7, someDay).Services()[:1], Step: time.Minute}
	run("memtable", all, s.tables[0].Source())
	run("memtable/service", one, s.tables[0].Source())
	s.seal(0)
	run("segment", all, s.segments[0])
	run("segment/service", one, s.segments[0])
	run("segment rows", all, badSeries{Segment: s.segments[0].(*segment.Segment), dropped: 1})
	run("no statistics", all, struct{ source.Source }{s.segments[0]})
}
