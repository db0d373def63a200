package segment

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

func TestDurationSteps(t *testing.T) {
	last := source.Step(0)
	for _, d := range durations() {
		step := source.StepOf(d)
		if end := step.End(); step < last || end < d || end-d > d/4 {
			t.Errorf("%d: step %d after %d, which ends at %d", d, step, last, end)
		}
		last = step
	}
}

// durations returns durations around powers of two, ascending.
func durations() []uint64 {
	list := []uint64{0}
	for bit := range 64 {
		list = append(list, 1<<bit-1, 1<<bit, 1<<bit+1, 1<<bit+1<<bit/4, 1<<bit+1<<bit/4-1)
	}
	slices.Sort(list)
	return append(list, math.MaxUint64)
}

// TestIndex compares the trace index with a map. Some hashes extend over more than a page.
func TestIndex(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	want := map[uint64][]uint32{}
	var postings []posting
	for i := range uint32(9000) {
		hash := r.Uint64() >> (64 - source.TraceHashBits)
		switch {
		case i < 3000:
			hash = 1 << 30
		case i%2 == 0:
			hash = uint64(i)
		}
		postings = append(postings, newPosting(hash, int(i)))
		want[hash] = append(want[hash], i)
	}
	index := newIndexSections(postings, nil)
	pages, dir := index.pages, index.directory
	list, err := readIndexPages(dir, int64(len(pages)))
	if err != nil || len(list) < 5 {
		t.Fatal(len(list), err)
	}
	want[0], want[1<<source.TraceHashBits-1], want[1<<30+1], want[1<<30-1] = nil, nil, nil, nil
	for hash, blocks := range want {
		var got []uint32
		for _, p := range pagesFor(list, hash) {
			if got, err = p.lookup(got, pages[p.offset:][:p.length], hash, 9000); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(got, blocks) {
			t.Fatalf("hash %d: %d blocks, want %d", hash, len(got), len(blocks))
		}
	}
	if perTrace := float64(len(pages)+len(dir)) / 9000; perTrace > 8 {
		t.Errorf("%g bytes per trace", perTrace)
	}
}

// TestFilter checks that all added values are found, and few others.
func TestFilter(t *testing.T) {
	for _, n := range []int{0, 1, 20, 21, 22, 343, 5000} {
		hash := func(i int) uint64 { return valueHash(keyHash("key"), fmt.Sprint(i)) }
		var hashes []uint64
		for i := range n {
			hashes = append(hashes, hash(i))
		}
		filter, _ := appendFilter(nil, hashes, nil)
		lines := linesFor(n)
		if len(filter) != filterBytes(lines) {
			t.Fatalf("%d values: %d bytes, want %d", n, len(filter), filterBytes(lines))
		}
		found := 0
		for i := range 2 * n {
			line := lineOf(hash(i), lines)
			from, to := pageOf(line, lines)
			if testPage(filter[from:to], hash(i), line) {
				found++
			} else if i < n {
				t.Fatalf("%d values: %d is missing", n, i)
			}
		}
		if found > n+n/20+1 {
			t.Errorf("%d values: %d of %d absent values are found", n, found-n, n)
		}
	}
}

// TestFiltersAreBounded checks that unlimited distinct integers cost the filter of a group, but not
// unlimited memory.
func TestFiltersAreBounded(t *testing.T) {
	columns := []rows.Column{{Place: rows.Attribute, Kind: otlpdata.ValueInt, Key: "k"}}
	l := &layout{tables: &rows.Tables{Columns: columns}, inline: []bool{false}}
	s := newFilterBuilder(l)
	s.enableIntegers()
	const few = 1000
	s.maxSize = 2 * filterBytes(linesFor(few))
	for i := range uint64(5 * few) {
		s.addInteger(0, i)
		if i%few == few-1 {
			s.end()
		}
	}
	for i := range uint64(maxGroupValues + 10) {
		s.addInteger(0, i)
	}
	if len(s.hashes) > maxGroupValues+1 {
		t.Errorf("%d values are in memory", len(s.hashes))
	}
	s.maxSize = maxFilters
	s.end()
	var lines []int
	for _, filterGroup := range s.list {
		lines = append(lines, filterGroup.lines)
	}
	if n := linesFor(few); !slices.Equal(lines, []int{n, n, -1, -1, -1, -1}) || len(s.section) != 2*filterBytes(n) {
		t.Errorf("filters with %v lines take %d bytes", lines, len(s.section))
	}
}

// TestDuplicatesDifferInWords checks that duplicates are dropped regardless of whether their texts
// are words, and that rows with any difference are kept.
func TestDuplicatesDifferInWords(t *testing.T) {
	tables := &rows.Tables{
		Columns:   []rows.Column{{Place: rows.Attribute, Kind: otlpdata.ValueString, Key: "k"}},
		Words:     [][]string{{"text"}},
		Scopes:    []otlpdata.Scope{{}, {Raw: []byte("\x0a\x01s")}},
		Resources: []rows.Resource{{Tenant: "t"}, {Tenant: "t"}, {Tenant: "u"}, {Tenant: "t", Resource: otlpdata.Resource{SchemaURL: "x"}}},
		Shapes:    []rows.Shape{{Tenant: "t"}, {Tenant: "t"}, {Tenant: "t", Scope: 1}, {Tenant: "u"}},
	}
	for i := range tables.Shapes {
		tables.Shapes[i].Service, tables.Shapes[i].Columns = otlpdata.MissingServiceName, []uint32{0}
	}
	row := func(shape, resource uint32, end uint64, c rows.Cell) []byte {
		h := rows.Head{Shape: shape, Resource: resource, TraceID: otlpdata.TraceID{1}, SpanID: otlpdata.SpanID{1}, Start: 5, End: end}
		return rows.AppendCell(rows.AppendHead(nil, &h), otlpdata.ValueString, c)
	}
	word, inline := rows.Cell{Word: 1}, rows.Cell{Data: "text"}
	list := [][]byte{
		row(0, 0, 9, word), row(0, 0, 9, inline), row(1, 1, 9, word), // duplicates
		row(0, 0, 9, rows.Cell{Data: "other"}), row(0, 0, 10, word), row(2, 0, 9, word), row(3, 2, 9, word), row(0, 3, 9, inline),
		row(0, 3, 9, word), // duplicate of the preceding row
	}
	seg, fs := writeSample(t, &sample{in: Input{Tables: tables, Rows: len(list), Row: func(i int) []byte { return list[i] }}}, 0)
	if info := seg.Info(); info.Rows != 6 || info.Duplicates != 3 || info.Traces != 2 {
		t.Errorf("%+v", info)
	}
	if spans := readAll(t, fs, "s"); len(slices.Compact(keysOf(spans))) != 6 {
		t.Errorf("%d spans", len(spans))
	}
}

// TestTablesHoldOnlyUsedDefinitions checks that the tables of a segment hold only what its rows
// use, by descending frequency.
func TestTablesHoldOnlyUsedDefinitions(t *testing.T) {
	s := randomSample(t, 4, 60)
	few := s.in
	few.Rows = 5
	seg, _ := writeSample(t, &sample{in: few}, 0)
	tables, err := seg.Tables()
	if err != nil {
		t.Fatal(err)
	}
	if n := len(tables.Shapes); n == 0 || n > 5 || len(tables.Resources) > 5 {
		t.Errorf("%d shapes, %d resources", n, len(tables.Resources))
	}
	seg, _ = writeSample(t, s, 0)
	if tables, err = seg.Tables(); err != nil {
		t.Fatal(err)
	}
	count := make([]int, len(tables.Resources))
	for i := range seg.Info().Blocks {
		if err := eachHead(seg, i, func(h *rows.Head) { count[h.Resource]++ }); err != nil {
			t.Fatal(err)
		}
	}
	if count[0] < count[len(count)-1] || slices.Contains(count, 0) {
		t.Errorf("rows by resource: %v", count)
	}
}

func eachHead(seg *Segment, number int, visit func(h *rows.Head)) error {
	b, err := seg.Open(context.Background(), number)
	if err != nil {
		return err
	}
	defer b.Close()
	var h rows.Head
	for row := range b.Len() {
		if err := b.Head(row, &h); err != nil {
			return err
		}
		visit(&h)
	}
	return nil
}
