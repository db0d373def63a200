//go:build unix

package disk

import (
	"math"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// BenchmarkPathProfiles compares selected traces with the rest, as Explain does. DISK_BENCH_SPANS
// and DISK_BENCH_FOLDER set the size of the store; see benchStore. "first-ms" is the time of the
// first call, "cpu-ms/op" the CPU time of the process.
func BenchmarkPathProfiles(b *testing.B) {
	e := benchStore(b)
	oldest, newest, rows := boundsOf(e)
	half := oldest.Add(newest.Sub(oldest) / 2)
	for _, c := range []struct {
		name, where, selected string
		from, to              time.Time // of the selection
	}{
		{name: "slow traces", selected: `{ trace:duration > 500ms }`},
		{name: "failed spans", selected: `{ error }`},
		{name: "rare selection", selected: `{ error && duration > 400ms }`},
		{name: "area of the heatmap", where: `{ root }`, selected: `{ duration > 200ms }`, from: half, to: half.Add(time.Minute)},
		{name: "attribute", where: `{ service = "checkout" }`, selected: `{ span:statusMessage != "" && error }`},
	} {
		q := tracestore.Query{From: oldest, To: newest, Where: whereOf(b, c.where)}
		sel := tracestore.Selection{From: c.from, To: c.to, Where: whereOf(b, c.selected)}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			var p tracestore.PathProfile
			var first time.Duration
			begin, cpu := time.Now(), cpuTime(b)
			for b.Loop() {
				var err error
				if p, err = e.ProfilePaths(b.Context(), q, sel, tracestore.PathOptions{}); err != nil {
					b.Fatal(err)
				}
				if first == 0 {
					first = time.Since(begin)
				}
			}
			b.ReportMetric(float64(rows), "stored-spans")
			b.ReportMetric(float64(first.Milliseconds()), "first-ms")
			b.ReportMetric(float64(p.Selected.Traces), "selected-traces")
			b.ReportMetric(float64(p.Rest.Traces), "rest-traces")
			b.ReportMetric(float64(p.Selected.Spans+p.Rest.Spans), "spans")
			b.ReportMetric(float64(len(p.Paths)), "paths") // traces of the data set have few paths in common
			b.ReportMetric(float64(p.Scanned), "scanned/op")
			b.ReportMetric(float64((cpuTime(b)-cpu).Milliseconds())/float64(b.N), "cpu-ms/op")
		})
	}
}

// boundsOf returns the first and the last start of the stored spans, and their number.
func boundsOf(e *exporter) (oldest, newest time.Time, rows int) {
	v := e.deletions.view()
	defer v.Release()
	first, last := uint64(math.MaxUint64), uint64(0)
	for _, src := range v.Sources() {
		n, from, to := src.Bounds()
		first, last, rows = min(first, from), max(last, to), rows+n
	}
	return time.Unix(0, int64(first)), time.Unix(0, int64(last)), rows
}

// whereOf returns a condition of the search language on single spans; "" is nil.
func whereOf(b *testing.B, text string) tracestore.Expr {
	b.Helper()
	if text == "" {
		return nil
	}
	q, err := traceql.Parse(text)
	if err != nil {
		b.Fatal(err)
	}
	return q.Set.(storequery.Select).Where
}
