package storetool

import (
	"path/filepath"
	"strconv"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// BenchmarkExport exports synthetic spans in each format.
func BenchmarkExport(b *testing.B) {
	s := newStore(b)
	s.segment(1, synthetic(b, 1, 40_000, "")...)
	snapshot, err := openSnapshot(vfs.OS(), s.unlock(), true)
	check(b, err)
	defer snapshot.close()
	for name, f := range formats() {
		b.Run(name, func(b *testing.B) {
			spans, bytes := 0, int64(0)
			dir := b.TempDir()
			for i := 0; b.Loop(); i++ {
				out, err := newPartitions(vfs.OS(), filepath.Join(dir, strconv.Itoa(i)), f())
				check(b, err)
				_, err = export(b.Context(), snapshot, selection{}, out, b.Output())
				check(b, err)
				spans, bytes = spans+out.Spans, bytes+out.Bytes
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(spans), "ns/span")
			b.ReportMetric(float64(bytes)/float64(spans), "B/span")
		})
	}
}
