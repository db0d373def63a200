package block

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/column"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/test/bench"
)

const benchRows = 4096

var partNames = [headParts]string{"runs", "high", "low", "shapes", "spans", "parents", "explicit", "resources", "new", "first", "steps",
	"durations"}

// benchSegment has some dozen blocks.
var benchSegment = sync.OnceValues(func() (*segment, *Layout) { return workload(bench.Spans(200_000)) })

func BenchmarkEncode(b *testing.B) {
	s, l := benchSegment()
	blocks := s.blocks(benchRows)
	for i := range blocks {
		blocks[i] = blocks[i].varying(l)
	}
	e := NewEncoder(column.Flush)
	var dst []byte
	n := 0
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		in := &blocks[i%len(blocks)]
		dst, _ = e.Encode(dst[:0], l, in.heads, in.cells, in.first)
		n += len(in.heads)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/row")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkDecode decodes every column and every head.
func BenchmarkDecode(b *testing.B) {
	s, l := benchSegment()
	encoded := encodeAll(s.blocks(benchRows), l, column.Flush)
	var pool Pool
	n := 0
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		block, err := pool.Open(l, encoded[i%len(encoded)], "file", i)
		if err != nil {
			b.Fatal(err)
		}
		if err := block.need(needHead | needCells); err != nil {
			b.Fatal(err)
		}
		for j := range block.index.vectors {
			if err := block.needVector(j, &block.index.vectors[j]); err != nil {
				b.Fatal(err)
			}
		}
		n += block.Len()
		block.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/row")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkTrace reads all rows of one trace of about twenty rows, like a look-up by trace id.
func BenchmarkTrace(b *testing.B) {
	s, l := benchSegment()
	encoded := encodeAll(s.blocks(benchRows), l, column.Flush)
	var pool Pool
	var cells []rows.Cell
	var list []int32
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		block, err := pool.Open(l, encoded[i%len(encoded)], "file", i)
		if err != nil {
			b.Fatal(err)
		}
		traces, _ := block.Traces()
		t := traces[i%len(traces)]
		list = list[:0]
		for row := t.First; row < t.First+t.Rows; row++ {
			list = append(list, row)
		}
		block.Expect(list)
		for row := t.First; row < t.First+t.Rows; row++ {
			var h rows.Head
			if err := block.Head(int(row), &h); err != nil {
				b.Fatal(err)
			}
			if cells, err = block.Cells(cells[:0], int(row)); err != nil {
				b.Fatal(err)
			}
		}
		block.Close()
	}
}

// BenchmarkSize prints the size of each part.
func BenchmarkSize(b *testing.B) {
	s, l := benchSegment()
	for _, level := range []column.Level{column.Flush, column.Merge} {
		encoded := encodeAll(s.blocks(benchRows), l, level)
		size, total, n := map[string]int{}, 0, len(s.heads)
		for _, data := range encoded {
			var d directory
			if err := d.read(data); err != nil {
				b.Fatal(err)
			}
			total += len(data)
			size["directory"] += int(d.heads[0].from)
			for i, e := range d.heads {
				size[partNames[i]] += int(e.length)
			}
			for _, e := range d.columns {
				c := l.tables.Columns[e.id]
				size[fmt.Sprintf("%d %d %s", c.Place, c.Kind, c.Key)] += int(e.length)
			}
		}
		names := make([]string, 0, len(size))
		for name := range size {
			names = append(names, name)
		}
		slices.SortFunc(names, func(a, b string) int { return cmp.Compare(size[b], size[a]) })
		table := ""
		for _, name := range names {
			table += fmt.Sprintf("%8.3f  %s\n", float64(size[name])/float64(n), name)
		}
		b.Logf("level %d: %d rows in %d blocks, %d shapes, bytes per row:\n%8.3f  total\n%s", level, n, len(encoded), len(l.tables.Shapes),
			float64(total)/float64(n), table)
	}
	b.ReportMetric(0, "ns/op")
}

func encodeAll(blocks []input, l *Layout, level column.Level) [][]byte {
	e := NewEncoder(level)
	var out [][]byte
	for i := range blocks {
		in := &blocks[i]
		data, _ := in.encode(e, nil, l)
		out = append(out, data)
	}
	return out
}
