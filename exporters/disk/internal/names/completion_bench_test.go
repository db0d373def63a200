//go:build unix

package names

import (
	"iter"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/memtable"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/test/bench"
)

// BenchmarkCompletion lists keys and values as a user interface does for each typed character. The
// first list is cold.
func BenchmarkCompletion(b *testing.B) {
	b.Run("segments", func(b *testing.B) { benchCompletion(b, scantest.BenchSegments(b, benchBatches(bench.Spans(400_000)))) })
	b.Run("memtable", func(b *testing.B) {
		spans := bench.Spans(200_000)
		t := memtable.New(memtable.Options{MaxBytes: 1 << 30, MaxRows: 2 * spans})
		for r := range bench.New(7, scantest.Day).Requests(spans, 512) {
			batch, err := otlpdata.FromOTLP(r.Body, otlpdata.Meta{}, otlpdata.Limits{})
			scantest.Must(err)
			_, err = t.Append(batch, 0)
			scantest.Must(err)
		}
		benchCompletion(b, scantest.Sources{t.Source()})
	})
}

func benchCompletion(b *testing.B, view scantest.Sources) {
	b.Helper()
	for _, c := range []struct{ name, key, prefix string }{
		{"keys", "", ""}, {"keys with a prefix", "", "http."}, {"few values", "http.request.method", ""}, {"a constant", "service.name", "c"},
		{"many values", "user.id", ""}, {"many with a prefix", "user.id", "user-1"}, {"absent value", "user.id", "absent"},
		{"absent key", "absent", ""},
	} {
		list := func(e *Catalog) (out []string) {
			var err error
			if c.key == "" {
				out, err = e.AttributeKeys(b.Context(), "", c.prefix, 0)
			} else {
				out, err = e.AttributeValues(b.Context(), "", c.key, c.prefix, 20)
			}
			scantest.Must(err)
			return out
		}
		b.Run(c.name+"/cold", func(b *testing.B) {
			for b.Loop() {
				list(New(scan.NewStore(func() scan.View { return view }, scan.Options{})))
			}
		})
		b.Run(c.name+"/warm", func(b *testing.B) {
			e := New(scan.NewStore(func() scan.View { return view }, scan.Options{}))
			n := len(list(e))
			b.ReportAllocs()
			before := scantest.CPUTime(b)
			for b.Loop() {
				list(e)
			}
			b.ReportMetric(float64(scantest.CPUTime(b)-before)/float64(b.N)/float64(time.Millisecond), "CPU-ms/op")
			b.ReportMetric(float64(n), "texts")
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
