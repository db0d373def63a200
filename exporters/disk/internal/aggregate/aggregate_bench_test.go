//go:build unix

package aggregate

import (
	"iter"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/test/bench"
)

// BenchmarkAggregate runs the queries of a user interface for one service and for all. In addition
// to the time it reports the CPU time of the process, the number of examined spans, and their
// share of all spans.
func BenchmarkAggregate(b *testing.B) {
	sources := scantest.BenchSegments(b, benchBatches(bench.Spans(400_000)))
	from, to, spans := ^uint64(0), uint64(0), 0
	for _, s := range sources {
		n, oldest, newest := s.Bounds()
		from, to, spans = min(from, oldest), max(to, newest), spans+n
	}
	e := New(scan.NewStore(func() scan.View { return sources }, scan.Options{}))
	service := scantest.Property(tracestore.Service, tracestore.Eq, tracestore.Text(bench.New(7, scantest.Day).Services()[5]))
	slow := scantest.Property(tracestore.Duration, tracestore.Gt, tracestore.Number(20e6))
	box := &tracestore.Selection{From: scantest.At(from + (to-from)/3), To: scantest.At(from + (to-from)/2), Where: slow}
	facets, compare := tracestore.FacetQuery{Values: 10}, tracestore.FacetQuery{Values: 10, Selection: box}
	groups := tracestore.GroupQuery{Limit: 100,
		By: []tracestore.Field{{Place: tracestore.Service}, {Place: tracestore.AnyAttribute, Key: "http.route"}}}
	minutes, seconds := tracestore.HeatmapQuery{Step: time.Minute}, tracestore.HeatmapQuery{Step: time.Second}
	for _, c := range []struct {
		name   string
		where  tracestore.Expr
		budget int
		want   tracestore.Aggregation
	}{
		{"heatmap/minutes", service, 0, tracestore.Aggregation{Heatmap: minutes}},
		{"heatmap/minutes+exemplars", service, 0, tracestore.Aggregation{Heatmap: minutes, Exemplars: 100}},
		{"heatmap/seconds", service, 0, tracestore.Aggregation{Heatmap: seconds}},
		{"heatmap/seconds/1M", service, 1_000_000, tracestore.Aggregation{Heatmap: seconds, Exemplars: 100}},
		{"heatmap/slow/1M", tracestore.And{service, slow}, 1_000_000, tracestore.Aggregation{Heatmap: minutes, Exemplars: 100}},
		{"facets", service, 0, tracestore.Aggregation{Facets: facets}},
		{"facets/1M", service, 1_000_000, tracestore.Aggregation{Facets: facets}},
		{"facets/200k", service, 200_000, tracestore.Aggregation{Facets: facets}},
		{"groups/1M", service, 1_000_000, tracestore.Aggregation{Groups: groups}},
		{"groups/all/1M", nil, 1_000_000, tracestore.Aggregation{Groups: groups}},
		{"facets/all/1M", nil, 1_000_000, tracestore.Aggregation{Facets: facets}},
		{"compare/1M", service, 1_000_000, tracestore.Aggregation{Facets: compare}},
		{"compare/all/1M", nil, 1_000_000, tracestore.Aggregation{Facets: compare}},
	} {
		b.Run(c.name, func(b *testing.B) {
			q := tracestore.Query{From: scantest.At(from), To: scantest.At(to), Where: c.where, Budget: tracestore.Budget{Spans: c.budget}}
			var a tracestore.Aggregate
			var err error
			b.ReportAllocs()
			before := scantest.CPUTime(b)
			for b.Loop() {
				a, err = e.Aggregate(b.Context(), q, c.want)
				scantest.Must(err)
			}
			b.ReportMetric(float64((scantest.CPUTime(b)-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(a.Scanned), "scanned/op")
			b.ReportMetric(float64(a.Spans), "counted/op")
			b.ReportMetric(a.Share, "share")
			b.ReportMetric(float64(spans), "spans")
		})
	}
}

// benchBatches returns the spans of the benchmark data set.
func benchBatches(spans int) iter.Seq[*otlpdata.Batch] {
	return func(yield func(*otlpdata.Batch) bool) {
		for r := range bench.New(7, scantest.Day).Requests(spans, 512) {
			b, err := otlpdata.FromOTLP(r.Body, otlpdata.Meta{}, otlpdata.Limits{})
			scantest.Must(err)
			if !yield(b) {
				return
			}
		}
	}
}
