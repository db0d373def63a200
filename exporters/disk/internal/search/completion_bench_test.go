//go:build unix

package search

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/memtable"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/test/bench"
)

// segmentFolder is the environment variable that names a folder of a store, the segments of which are searched instead of small ones.
const segmentFolder = "BENCH_SEGMENTS"

// BenchmarkCompletion lists the keys and the values of a key, as often as a user types a character. The first list of an engine is cold.
func BenchmarkCompletion(b *testing.B) {
	b.Run("segments", func(b *testing.B) { benchCompletion(b, benchSegments(b)) })
	b.Run("memtable", func(b *testing.B) {
		const spans = 200_000
		t := memtable.New(memtable.Options{MaxBytes: 1 << 30, MaxRows: 2 * spans})
		for r := range bench.New(7, someDay).Requests(spans, 512) {
			batch, err := otlpdata.FromOTLP(r.Body, otlpdata.Meta{}, otlpdata.Limits{})
			must(err)
			_, err = t.Append(batch, 0)
			must(err)
		}
		benchCompletion(b, realView{t.Source()})
	})
}

func benchCompletion(b *testing.B, view realView) {
	b.Helper()
	for _, c := range []struct{ name, key, prefix string }{
		{"keys", "", ""}, {"keys with a prefix", "", "http."}, {"few values", "http.request.method", ""}, {"a constant", "service.name", "c"},
		{"many values", "user.id", ""}, {"many with a prefix", "user.id", "user-1"}, {"absent value", "user.id", "nobody"}, {"absent key", "absent", ""},
	} {
		list := func(e *Engine) (out []string) {
			var err error
			if c.key == "" {
				out, err = e.AttributeKeys(b.Context(), "", c.prefix, 0)
			} else {
				out, err = e.AttributeValues(b.Context(), "", c.key, c.prefix, 20)
			}
			must(err)
			return out
		}
		b.Run(c.name+"/cold", func(b *testing.B) {
			for b.Loop() {
				list(New(func() View { return view }, Options{}))
			}
		})
		b.Run(c.name+"/warm", func(b *testing.B) {
			e := New(func() View { return view }, Options{})
			n := len(list(e))
			b.ReportAllocs()
			before := cpuTime(b)
			for b.Loop() {
				list(e)
			}
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N)/float64(time.Millisecond), "CPU-ms/op")
			b.ReportMetric(float64(n), "texts")
		})
	}
}

func cpuTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	must(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// benchSegments opens the segments of the folder that is named, or makes some.
func benchSegments(b *testing.B) realView {
	b.Helper()
	var view realView
	cache := segment.NewCache(48 << 20) // as much as there is by default
	paths, err := filepath.Glob(filepath.Join(os.Getenv(segmentFolder), "*.seg"))
	must(err)
	for _, path := range paths {
		s, err := segment.OpenCached(vfs.OS(), path, cache)
		must(err)
		b.Cleanup(func() { _ = s.Close() })
		view = append(view, s)
	}
	if len(paths) > 0 {
		return view
	}
	const spans, most = 400_000, 100_000
	s := newCallStore(b, 1, Options{})
	s.tables[0] = memtable.New(memtable.Options{MaxBytes: 1 << 30, MaxRows: 2 * most})
	n := 0
	for r := range bench.New(7, someDay).Requests(spans, 512) {
		batch, err := otlpdata.FromOTLP(r.Body, otlpdata.Meta{}, otlpdata.Limits{})
		must(err)
		_, err = s.tables[0].Append(batch, 0)
		must(err)
		if n += r.Spans; n >= most {
			s.seal(0)
			n = 0
		}
	}
	for _, s := range s.segments {
		view = append(view, s)
	}
	return view
}
