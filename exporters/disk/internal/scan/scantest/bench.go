//go:build unix

package scantest

import (
	"iter"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/memtable"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// segmentFolder is the environment variable with the folder of a store whose segments BenchSegments
// opens.
const segmentFolder = "BENCH_SEGMENTS"

// CPUTime returns the CPU time that the process has used.
func CPUTime(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	Must(syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchSegments opens the segments in the folder that BENCH_SEGMENTS names. Without that variable
// it makes segments of the batches, with about 100,000 spans each.
func BenchSegments(b testing.TB, batches iter.Seq[*otlpdata.Batch]) Sources {
	b.Helper()
	var view Sources
	cache := segment.NewCache(48 << 20) // the default size
	paths, err := filepath.Glob(filepath.Join(os.Getenv(segmentFolder), "*.seg"))
	Must(err)
	for _, path := range paths {
		s, err := segment.OpenCached(vfs.OS(), path, cache)
		Must(err)
		b.Cleanup(func() { _ = s.Close() })
		view = append(view, s)
	}
	if len(paths) > 0 {
		return view
	}
	const rows = 100_000
	s := NewReal(b, 1)
	s.Tables[0] = memtable.New(memtable.Options{MaxBytes: 1 << 30, MaxRows: 2 * rows})
	n := 0
	for batch := range batches {
		_, err = s.Tables[0].Append(batch, 0)
		Must(err)
		if n += batch.Len(); n >= rows {
			s.Seal(0)
			n = 0
		}
	}
	for _, s := range s.Segments {
		view = append(view, s)
	}
	return view
}
