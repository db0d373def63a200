package segment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs/vfstest"
)

// writeSample writes a sample to the file "s" with blocks of blockRows rows, and opens it.
func writeSample(tb testing.TB, s *sample, blockRows int) (*Segment, vfs.FS) {
	tb.Helper()
	fs := vfstest.NewMem()
	info, err := Write(fs, "s", s.in, testMeta, Options{blockRows: blockRows})
	if err != nil {
		tb.Fatal(err)
	}
	seg := openTest(tb, fs, "s")
	if !reflect.DeepEqual(seg.Info(), info) {
		tb.Fatalf("opened %+v, wrote %+v", seg.Info(), info)
	}
	return seg, fs
}

var testMeta = Meta{Level: 1, FirstEpoch: 3, LastEpoch: 1 << 60, Replaces: []string{"a", "b"},
	FirstArrival: time.Unix(1_700_000_000, 5).UTC()}

func openTest(tb testing.TB, fs vfs.FS, name string) *Segment {
	tb.Helper()
	s, err := Open(fs, name)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { s.Close() })
	return s
}

func TestRoundTrip(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			s := randomSample(t, seed, 1+int(seed))
			seg, fs := writeSample(t, s, []int{1, 4, 20, 0}[seed%4])
			info := seg.Info()
			if info.Rows != len(s.spans) || info.Duplicates != s.sent-len(s.spans) || info.Unreadable != 0 {
				t.Fatalf("%+v, want %d distinct spans of %d", info, len(s.spans), s.sent)
			}
			checkSame(t, "reference reader", readAll(t, fs, "s"), s.spans)
			checkSame(t, "blocks", readBlocks(t, seg), s.spans)
			checkTraces(t, seg, s.spans)
			checkHints(t, seg)
			if err := seg.Verify(t.Context(), func(part string, err error) {
				if err != nil {
					t.Errorf("verify %s: %v", part, err)
				}
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// readBlocks reads all spans block by block, and checks the results of Blocks.
func readBlocks(t *testing.T, seg *Segment) []storedSpan {
	t.Helper()
	infos, err := seg.Blocks()
	if err != nil {
		t.Fatal(err)
	}
	tables, err := seg.Tables()
	if err != nil {
		t.Fatal(err)
	}
	var spans []storedSpan
	info := seg.Info()
	for i, want := range infos {
		b, err := seg.Open(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		longest := map[uint32]uint64{}
		first, last := uint64(math.MaxUint64), uint64(0)
		for row := range b.Len() {
			s, err := spanOf(tables, b, row)
			if err != nil {
				t.Fatal(err)
			}
			spans = append(spans, s)
			var h rows.Head
			if err := b.Head(row, &h); err != nil {
				t.Fatal(err)
			}
			longest[h.Shape] = max(longest[h.Shape], h.Duration())
			first, last = min(first, h.Start), max(last, h.Start)
		}
		shapes, known := seg.BlockShapes(nil, i)
		if !known || b.Len() != want.Rows || first != want.MinStart || last != want.MaxStart || len(longest) != len(shapes) ||
			first < info.MinStart || last > info.MaxStart {
			t.Fatalf("block %d: %d rows, %d to %d, %d shapes; %+v, %+v", i, b.Len(), first, last, len(longest), want, info)
		}
		for _, s := range shapes {
			if got, end := longest[s.Shape], s.Longest.End(); got > end || end-got > got/4 {
				t.Fatalf("block %d: shape %d takes up to %d, not %d", i, s.Shape, got, end)
			}
		}
		b.Close()
	}
	return spans
}

func checkTraces(t *testing.T, seg *Segment, spans []storedSpan) {
	t.Helper()
	type key struct {
		tenant string
		id     otlpdata.TraceID
	}
	want := map[key][]storedSpan{{"tenant 0", otlpdata.TraceID{1: 1}}: nil, {"absent", otlpdata.TraceID{0: 0, 15: 7}}: nil}
	for _, s := range spans {
		want[key{s.tenant, s.trace}] = append(want[key{s.tenant, s.trace}], s)
	}
	for k, w := range want {
		got, err := readTrace(seg, k.tenant, k.id)
		if err != nil {
			t.Fatal(err)
		}
		checkSame(t, fmt.Sprintf("trace %v", k), got, w)
	}
}

// readTrace returns the readable spans of a trace, and the errors of others.
func readTrace(seg *Segment, tenant string, id otlpdata.TraceID) ([]storedSpan, error) {
	tables, err := seg.Tables()
	if err != nil {
		return nil, err
	}
	var spans []storedSpan
	err = seg.Trace(context.Background(), tenant, id, func(b source.Block, list []int32) error {
		for _, row := range list {
			s, err := spanOf(tables, b, int(row))
			if err != nil {
				return err
			}
			spans = append(spans, s)
		}
		return nil
	})
	return spans, err
}

// checkHints compares all hints with all rows.
func checkHints(t *testing.T, seg *Segment) {
	t.Helper()
	tables, _ := seg.Tables()
	infos, _ := seg.Blocks()
	for i := range infos {
		b, err := seg.Open(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		for row := range b.Len() {
			checkRowHints(t, seg, tables, b, i, row)
		}
		b.Close()
	}
	for i := range tables.Columns {
		words, _ := seg.Words(uint32(i))
		if n := len(slices.Compact(slices.Sorted(slices.Values(words)))); n != len(words) {
			t.Errorf("column %d: %d words, %d of them distinct", i, len(words), n)
		}
	}
}

func checkRowHints(t *testing.T, seg *Segment, tables *rows.Tables, b source.Block, number, row int) {
	t.Helper()
	var h rows.Head
	var a rows.Assembler
	if err := b.Head(row, &h); err != nil {
		t.Fatal(err)
	}
	cells, err := b.Cells(nil, row)
	if err != nil {
		t.Fatal(err)
	}
	for i, column := range tables.Shapes[h.Shape].Columns {
		text, isText := tables.Text(column, cells[i]), tables.Columns[column].Kind == otlpdata.ValueString
		if c, ok := seg.Constant(h.Shape, i); ok {
			if c != cells[i] {
				t.Fatalf("constant %+v, cell %+v", c, cells[i])
			}
			continue
		}
		if of := tables.Columns[column]; of.Kind == otlpdata.ValueInt && of.Key != "" && seg.HoldsIntegers() &&
			!seg.MayHold(number, of.Key, strconv.FormatInt(int64(cells[i].Num), 10)) {
			t.Fatalf("block %d: MayHold denies %s = %d", number, of.Key, int64(cells[i].Num))
		}
		if of := tables.Columns[column]; of.Kind == otlpdata.ValueArray && of.Key != "" {
			checkArrayHints(t, seg, number, of.Key, tables.Value(column, cells[i]))
		}
		if words, complete := seg.Words(column); complete && isText && !slices.Contains(words, text) {
			t.Fatalf("column %d holds %q, which is not a word", column, text)
		}
	}
	span, err := a.Span(tables, &h, cells)
	if err != nil {
		t.Fatal(err)
	}
	lists := [][]otlpdata.KeyValue{span.Attributes}
	for _, e := range span.Events {
		lists = append(lists, e.Attributes)
	}
	for _, l := range span.Links {
		lists = append(lists, l.Attributes)
	}
	for _, kv := range slices.Concat(lists[1+len(span.Events):]...) { // of links, which are never constant
		checkArrayHints(t, seg, number, kv.Key, kv.Value)
	}
	for _, kv := range slices.Concat(lists...) {
		if kv.Value.Kind() == otlpdata.ValueString && !seg.MayHold(number, kv.Key, kv.Value.Str()) {
			t.Fatalf("block %d: MayHold denies %s = %q", number, kv.Key, kv.Value.Str())
		}
	}
}

// checkArrayHints checks that filters do not exclude an array and its elements.
func checkArrayHints(t *testing.T, seg *Segment, block int, key string, v otlpdata.Value) {
	t.Helper()
	if v.Kind() == otlpdata.ValueArray && !seg.MayHold(block, key, v.AsString()) {
		t.Fatalf("block %d: MayHold denies %s = %s", block, key, v.AsString())
	}
	for e := range v.ElementsInJSON() {
		if !seg.MayHold(block, key, e.AsString()) {
			t.Fatalf("block %d: MayHold denies an element of %s = %s: %q", block, key, v.AsString(), e.AsString())
		}
	}
}

// TestHintsExclude checks that almost all absent texts are excluded.
func TestHintsExclude(t *testing.T) {
	seg, _ := writeSample(t, randomSample(t, 3, 200), 20)
	n, may := 2000, 0
	for i := range n {
		if seg.MayHold(i%seg.Info().Blocks, "unique", fmt.Sprintf("absent %d", i)) {
			may++
		}
	}
	if may > n/50 {
		t.Errorf("MayHold is true for %d of %d absent texts", may, n)
	}
	if seg.MayHold(0, "constant", "something else") && seg.MayHold(0, "constant", "and other than that") {
		t.Error("filter excludes nothing")
	}
	tables, _ := seg.Tables()
	dictionaries := 0
	for i := range tables.Columns {
		if words, complete := seg.Words(uint32(i)); complete && len(words) > 0 {
			dictionaries++
		}
	}
	if dictionaries == 0 {
		t.Error("no column has a dictionary")
	}
}

func TestBlocksAreCutBetweenTraces(t *testing.T) {
	s := randomSample(t, 8, 60)
	seg, _ := writeSample(t, s, 50)
	infos, _ := seg.Blocks()
	blocks := map[otlpdata.TraceID]int{}
	for i, info := range infos {
		if info.Rows > 100 {
			t.Errorf("block %d has %d rows", i, info.Rows)
		}
	}
	rowsOf := map[otlpdata.TraceID]int{}
	for _, span := range s.spans {
		if span.tenant == "tenant 0" {
			rowsOf[span.trace]++
		}
	}
	for id := range rowsOf {
		if err := seg.Trace(t.Context(), "tenant 0", id, func(source.Block, []int32) error { blocks[id]++; return nil }); err != nil {
			t.Fatal(err)
		}
		if rowsOf[id] <= 50 && blocks[id] != 1 {
			t.Errorf("%d rows in %d blocks", rowsOf[id], blocks[id])
		}
	}
}

func TestEmptySegment(t *testing.T) {
	seg, fs := writeSample(t, &sample{in: Input{Tables: &rows.Tables{}}}, 0)
	if got := readAll(t, fs, "s"); len(got) != 0 {
		t.Errorf("%d spans", len(got))
	}
	if got, err := readTrace(seg, "", otlpdata.TraceID{}); len(got) != 0 || err != nil {
		t.Errorf("%d spans, %v", len(got), err)
	}
	if seg.Info().Rows != 0 || seg.MayHold(0, "a", "b") != true {
		t.Errorf("%+v", seg.Info())
	}
}

func TestUnreadableRowsAreCounted(t *testing.T) {
	s := randomSample(t, 5, 20)
	row := s.in.Row
	s.in.Row = func(i int) []byte {
		if i == 3 {
			return row(i)[:20]
		}
		return row(i)
	}
	seg, fs := writeSample(t, s, 0)
	if got := len(readAll(t, fs, "s")); seg.Info().Unreadable != 1 || got != seg.Info().Rows || got < len(s.spans)-1 {
		t.Errorf("%d spans of %d, %+v", got, len(s.spans), seg.Info())
	}
}

func TestMemory(t *testing.T) {
	seg, _ := writeSample(t, randomSample(t, 9, 100), 20)
	before := seg.Memory()
	if _, err := seg.Blocks(); err != nil {
		t.Fatal(err)
	}
	if _, err := readTrace(seg, "tenant 0", otlpdata.TraceID{}); err != nil {
		t.Fatal(err)
	}
	if loaded := seg.Memory(); loaded < before+10_000 {
		t.Errorf("%d bytes, before %d", loaded, before)
	}
	if seg.Drop(); seg.Memory() > before+100 { // the directory of the trace index stays
		t.Errorf("%d bytes, before %d", seg.Memory(), before)
	}
}

// TestCache checks that segments use at most the memory of their cache, that recently used ones
// keep theirs, and that all continue to work. With a limit of two segments, both others are
// candidates for eviction whenever a third one loads, and so the oldest is always evicted.
func TestCache(t *testing.T) {
	_, fs := writeSample(t, randomSample(t, 9, 100), 20)
	one, err := Open(fs, "s")
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	spans := readAll(t, fs, "s")
	if _, err := one.Blocks(); err != nil {
		t.Fatal(err)
	}
	cache := NewCache(2 * one.droppable())
	var open []*Segment
	for range 10 {
		s, err := OpenCached(fs, "s", cache)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, s)
	}
	for round := range 3 {
		for i, s := range open {
			if blocks, err := s.Blocks(); err != nil || len(blocks) == 0 {
				t.Fatalf("segment %d: %d blocks, %v", i, len(blocks), err)
			}
			if held := cache.Memory(); held > 2*one.droppable() {
				t.Fatalf("round %d: %d bytes in use, limit is %d", round, held, 2*one.droppable())
			}
		}
		if last := open[len(open)-1]; last.droppable() == 0 || open[0].droppable() != 0 {
			t.Errorf("segment used last holds %d bytes, segment used first %d", last.droppable(), open[0].droppable())
		}
	}
	for _, s := range open {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if cache.Memory() != 0 || len(spans) == 0 {
		t.Errorf("closed segments hold %d bytes", cache.Memory())
	}
}

func TestOpenStopsWithItsContext(t *testing.T) {
	seg, _ := writeSample(t, randomSample(t, 9, 10), 20)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := seg.Open(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("open: %v", err)
	}
	if err := seg.Verify(ctx, func(string, error) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("verify: %v", err)
	}
	if _, err := seg.Open(t.Context(), 1000); err == nil {
		t.Error("no error for block 1000")
	}
}
