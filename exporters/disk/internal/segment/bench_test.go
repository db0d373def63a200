package segment

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows/rowstest"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
	"github.com/tracing-backend/tracing/test/bench"
)

// benchInput returns spans of the bench data set in the order of arrival: 512 spans of one instance
// per request.
func benchInput(tb testing.TB, spans int) Input {
	in := rowstest.New()
	in.MaxWords = 4096
	for r := range bench.New(1, time.Unix(1_700_000_000, 0)).Requests(spans, 512) {
		b, err := otlpdata.FromOTLP(r.Body, otlpdata.Meta{Tenant: "t"}, otlpdata.Limits{})
		if err != nil {
			tb.Fatal(err)
		}
		in.Add(b)
	}
	return inputOf(in)
}

func inputOf(in *rowstest.Interner) Input {
	list := in.Rows()
	return Input{Tables: in.Tables().Snapshot(), Rows: len(list), Row: func(i int) []byte { return list[i] }}
}

func benchSpans() int { return bench.Spans(200_000) }

func BenchmarkWrite(b *testing.B) {
	in := benchInput(b, benchSpans())
	b.ReportAllocs()
	b.ResetTimer()
	var s *Segment
	for range b.N {
		fs := vfstest.NewMem()
		if _, err := Write(fs, "s", in, Meta{}, Options{}); err != nil {
			b.Fatal(err)
		}
		if s, _ = Open(fs, "s"); s == nil {
			b.Fatal("segment not opened")
		}
	}
	b.StopTimer()
	rows := float64(s.Info().Rows)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
	b.ReportMetric(float64(s.Info().Size)/rows, "B/row")
	b.ReportMetric(float64(s.dir.begin())/rows, "B/row-blocks")
	for k := kind(1); k < kinds; k++ {
		b.Logf("%-22s %8.3f B/row (%d raw)", k, float64(s.dir[k].length)/rows, s.dir[k].raw)
	}
	info := s.Info()
	b.Logf("%d rows, %d traces, %d blocks, %.1f B/row as rows", info.Rows, info.Traces, info.Blocks, float64(info.RowBytes)/rows)
	s.Close()
}

func benchSegment(b *testing.B) (*Segment, vfs.FS, []otlpdata.TraceID) {
	b.Helper()
	in := benchInput(b, benchSpans())
	fs := vfstest.NewMem()
	if _, err := Write(fs, "s", in, Meta{}, Options{}); err != nil {
		b.Fatal(err)
	}
	scan := newFlushScan(in)
	scan.run()
	var ids []otlpdata.TraceID
	for i := range scan.order.list {
		ids = append(ids, scan.order.list[i].id)
	}
	return openTest(b, fs, "s"), fs, ids
}

// BenchmarkOpen opens a segment, with and without loading what reading a span requires.
func BenchmarkOpen(b *testing.B) {
	_, fs, _ := benchSegment(b)
	for _, load := range []bool{false, true} {
		b.Run(fmt.Sprintf("load=%t", load), func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				s, err := Open(fs, "s")
				if err != nil {
					b.Fatal(err)
				}
				if load {
					if _, err := s.Blocks(); err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(float64(s.Memory())/float64(benchSpans()), "memory-B/row")
				}
				s.Close()
			}
		})
	}
}

func BenchmarkTrace(b *testing.B) {
	s, _, ids := benchSegment(b)
	ctx := context.Background()
	for _, tenant := range []string{"t", "absent"} {
		b.Run(tenant, func(b *testing.B) {
			b.ReportAllocs()
			found := 0
			for i := range b.N {
				err := s.Trace(ctx, tenant, ids[i%len(ids)], func(b source.Block, rows []int32) error { found += len(rows); return nil })
				if err != nil {
					b.Fatal(err)
				}
			}
			if (found > 0) != (tenant == "t") {
				b.Fatal(found)
			}
		})
	}
}

// BenchmarkMerge merges consecutive segments, like the store. The files are on disk, so that the
// memory is the memory of the merge.
func BenchmarkMerge(b *testing.B) {
	const parts = 4
	fsys, dir := vfs.OS(), b.TempDir()
	inputs, size := mergeInputs(b, fsys, dir, parts)
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	base, peak := m.HeapInuse, uint64(0)
	opts := MergeOptions{Pace: func() error {
		runtime.ReadMemStats(&m)
		peak = max(peak, m.HeapInuse)
		return nil
	}}
	b.ReportAllocs()
	b.ResetTimer()
	var info Info
	for range b.N {
		var err error
		if info, err = Merge(fsys, filepath.Join(dir, "merged"), inputs, Meta{}, opts); err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	rows := float64(info.Rows)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
	b.ReportMetric(float64(info.Size)/rows, "B/row")
	b.ReportMetric(float64(size)/rows, "B/row-before")
	b.ReportMetric(float64(peak-base)/(1<<20), "peak-MiB")
}

// mergeInputs writes segments of benchSpans rows and returns their total size.
func mergeInputs(b *testing.B, fsys vfs.FS, dir string, parts int) (inputs []source.Source, size int64) {
	b.Helper()
	spans := benchSpans()
	in := benchInput(b, parts*spans)
	for i := range parts {
		part := Input{Tables: in.Tables, Rows: spans, Row: func(row int) []byte { return in.Row(i*spans + row) }}
		name := filepath.Join(dir, fmt.Sprint(i))
		info, err := Write(fsys, name, part, Meta{}, Options{})
		if err != nil {
			b.Fatal(err)
		}
		size += info.Size
		inputs = append(inputs, openTest(b, fsys, name))
	}
	return inputs, size
}
