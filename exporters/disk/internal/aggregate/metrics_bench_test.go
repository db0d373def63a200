package aggregate

import (
	"testing"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/memtable"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/test/bench"
)

// BenchmarkMetrics counts the spans of a memtable, and of a segment from its statistics and from
// its rows.
func BenchmarkMetrics(b *testing.B) {
	spans := bench.Spans(400_000)
	s := newRealStore(b, 1, scan.Options{})
	s.Tables[0] = memtable.New(memtable.Options{MaxBytes: 1 << 30, MaxRows: 2 * spans})
	for r := range bench.New(7, scantest.Day).Requests(spans, 512) {
		batch, err := otlpdata.FromOTLP(r.Body, otlpdata.Meta{}, otlpdata.Limits{})
		scantest.Must(err)
		_, err = s.Tables[0].Append(batch, 0)
		scantest.Must(err)
	}
	run := func(name string, q tracestore.MetricsQuery, src source.Source) {
		e := New(scan.NewStore(func() scan.View { return scantest.Sources{src} }, scan.Options{}))
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				a, err := e.Metrics(b.Context(), "", q)
				scantest.Must(err)
				if len(a.Series) == 0 || !a.Complete() {
					b.Fatalf("%d series", len(a.Series))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(spans), "ns/span")
		})
	}
	all := tracestore.MetricsQuery{ByOperation: true}
	one := tracestore.MetricsQuery{Services: bench.New(7, scantest.Day).Services()[:1], Step: time.Minute}
	run("memtable", all, s.Tables[0].Source())
	run("memtable/service", one, s.Tables[0].Source())
	s.Seal(0)
	run("segment", all, s.Segments[0])
	run("segment/service", one, s.Segments[0])
	run("segment rows", all, badSeries{Segment: s.Segments[0].(*segment.Segment), dropped: 1})
	run("no statistics", all, struct{ source.Source }{s.Segments[0]})
}
