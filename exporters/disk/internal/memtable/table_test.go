package memtable

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/soak"
)

// tight returns options whose limits are reached with few spans.
func tight() Options {
	return Options{BlockRows: 16, Pool: NewPool(4096, 0),
		Limits: Limits{Words: 300, Names: 2, KeySets: 4, ServiceShapes: 64, Shapes: 512}}
}

func randomBatches(tb testing.TB, seed uint64, n int) []*otlpdata.Batch {
	tb.Helper()
	g := newGenerator(seed)
	var out []*otlpdata.Batch
	for i := range n {
		b := g.batch(tb, []string{"", "acme"}[i%2], 12)
		if i%3 == 0 {
			b = doubled(tb, b)
		}
		out = append(out, b)
	}
	return out
}

// TestRoundTrip compares written and read content, with default and tight limits.
func TestRoundTrip(t *testing.T) {
	soak.SkipIfRaced(t)
	for name, o := range map[string]Options{"usual": {BlockRows: 64}, "tight": tight()} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20) {
				batches := randomBatches(t, seed, 20)
				table := New(o)
				fill(t, table, batches)
				checkContent(t, table.Source(), contentOf(t, batches...))
			}
		})
	}
}

// TestInput checks that the segment writer gets all rows in the order of arrival.
func TestInput(t *testing.T) {
	batches := benchBatches(t, 3000, 100)
	table := New(Options{BlockRows: 256})
	fill(t, table, batches)
	in := table.Input()
	if want := contentOf(t, batches...).spans(); in.Rows != want || table.Rows() != want {
		t.Fatalf("%d and %d rows, want %d", in.Rows, table.Rows(), want)
	}
	var h rows.Head
	for i := range in.Rows {
		if _, err := in.Tables.ReadRow(in.Row(i), &h, nil); err != nil {
			t.Fatalf("row %d: %v", i, err)
		}
	}
}

// TestSnapshot checks that a source does not change when the table grows.
func TestSnapshot(t *testing.T) {
	batches := randomBatches(t, 3, 30)
	table := New(tight())
	fill(t, table, batches[:10])
	before := table.Source()
	if again := table.Source(); again != before {
		t.Error("unchanged table returned a new snapshot")
	}
	fill(t, table, batches[10:])
	checkContent(t, before, contentOf(t, batches[:10]...))
	checkContent(t, table.Source(), contentOf(t, batches...))
}

// TestConcurrent runs writers and readers concurrently: every snapshot must hold complete batches
// only.
func TestConcurrent(t *testing.T) {
	batches := benchBatches(t, 6000, 300)
	table := New(Options{BlockRows: 128, Pool: NewPool(16<<10, 0)})
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	for w := range 2 {
		writers.Go(func() {
			for i := w; i < len(batches); i += 2 {
				if _, err := table.Append(batches[i], 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	whole := contentOf(t, batches...)
	for range 2 {
		readers.Go(func() {
			for stop := false; !stop; {
				select {
				case <-done:
					stop = true
				default:
				}
				if err := readSome(table, whole); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	checkContent(t, table.Source(), whole)
}

// readSome reads a snapshot and compares its traces with those read by id.
func readSome(table *Table, whole content) error {
	src := table.Source()
	got, err := scan(src)
	if err != nil {
		return err
	}
	n := 0
	for k, spans := range got {
		if n++; n > 20 {
			break
		}
		one, err := traceOf(src, k)
		if err != nil {
			return err
		}
		if fmt.Sprint(one) != fmt.Sprint(spans) || len(spans) > len(whole[k]) {
			return fmt.Errorf("trace %s has %d spans by id, %d in blocks, %d in the complete content", k.id, len(one), len(spans), len(whole[k]))
		}
	}
	return nil
}

// TestFailedAppend checks that no rows of an invalid batch remain, and that the log gets the
// definitions that the table kept.
func TestFailedAppend(t *testing.T) {
	good := randomBatches(t, 4, 12)
	table := New(tight())
	records := fill(t, table, good[:4])
	before, known := table.Rows(), len(table.tables.Shapes)
	for _, b := range good[4:8] {
		encoded, _ := b.Encoded()
		broken := otlpdata.FromStored(append(append([]byte{}, encoded...), 0xff), b.Meta())
		if _, err := table.Append(broken, 0); err == nil {
			t.Fatal("no error for a damaged batch")
		}
	}
	if table.Rows() != before || len(table.tables.Shapes) == known {
		t.Fatalf("%d rows, want %d, and %d shapes, want more than %d", table.Rows(), before, len(table.tables.Shapes), known)
	}
	records = append(records, fill(t, table, good[4:])...)
	want := contentOf(t, good...)
	checkContent(t, table.Source(), want)
	replayed := New(tight())
	for _, r := range records {
		if lost, err := replayed.Replay(r); lost > 0 || err != nil {
			t.Fatal(lost, err)
		}
	}
	checkContent(t, replayed.Source(), want)
}

// TestCanceled checks that reading stops when the context ends or visit returns an error.
func TestCanceled(t *testing.T) {
	table := New(Options{BlockRows: 8})
	fill(t, table, hostile(t, 1, 64, attacks()["one trace"]))
	ctx, cancel := context.WithCancel(t.Context())
	src, visits, stop := table.Source(), 0, errors.New("enough")
	err := src.Trace(ctx, "", otlpdata.TraceID{1}, func(source.Block, []int32) error {
		visits++
		return stop
	})
	if visits != 1 || !errors.Is(err, stop) {
		t.Errorf("%d visits although the first one failed, %v", visits, err)
	}
	cancel()
	if err := src.Trace(ctx, "", otlpdata.TraceID{1}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("reading a trace: %v", err)
	}
	if _, err := src.Open(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("opening a block: %v", err)
	}
}

// TestArrivals checks arrivals from Append and Arrived.
func TestArrivals(t *testing.T) {
	table := New(Options{})
	if first, last := table.Arrivals(); !first.IsZero() || !last.IsZero() {
		t.Error("empty table has arrivals")
	}
	fill(t, table, benchBatches(t, 100, 100))
	late := time.Unix(1_800_000_100, 0)
	table.Arrived(late)
	table.Arrived(time.Time{})
	if first, last := table.Arrivals(); !first.Equal(time.Unix(1_800_000_000, 0)) || !last.Equal(late) {
		t.Errorf("arrivals %v, %v", first, last)
	}
}

// TestRelease checks that the next table reuses the chunks.
func TestRelease(t *testing.T) {
	pool := NewPool(4096, 3)
	table := New(Options{Pool: pool})
	fill(t, table, benchBatches(t, 300, 100))
	used := len(table.arena.chunks)
	table.Release()
	if used <= 3 || len(pool.free) != 3 {
		t.Fatalf("%d chunks used, %d free, want more than 3 and 3", used, len(pool.free))
	}
	batches := benchBatches(t, 300, 100)
	next := New(Options{Pool: pool})
	fill(t, next, batches)
	checkContent(t, next.Source(), contentOf(t, batches...))
	if len(pool.free) > 0 {
		t.Error("free chunks were not reused")
	}
}

// TestFull checks that each single limit makes a table full.
func TestFull(t *testing.T) {
	batches := benchBatches(t, 2000, 100)
	for name, o := range map[string]Options{"rows": {MaxRows: 2000}, "bytes": {MaxBytes: 1 << 20}, "services": {Limits: Limits{Services: 5}},
		"resources": {Limits: Limits{Resources: 10}}, "scopes": {Limits: Limits{Scopes: 3}}} {
		table := New(o)
		if table.Full() {
			t.Errorf("%s: empty table is full", name)
		}
		fill(t, table, batches)
		if !table.Full() {
			t.Errorf("%s: not full", name)
		}
	}
	table := New(Options{})
	if fill(t, table, batches); table.Full() {
		t.Error("table is full with default limits")
	}
}

// TestBytes compares the estimate with the size of the heap.
func TestBytes(t *testing.T) {
	soak.SkipIfRaced(t)
	batches := benchBatches(t, 60_000, 512)
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	table := New(Options{})
	for _, b := range batches {
		if _, err := table.Append(b, 0); err != nil {
			t.Fatal(err)
		}
	}
	used := heap() - before
	if got := table.Bytes(); got < used*8/10 || got > used*12/10 {
		t.Errorf("estimate of %d bytes, %d bytes on the heap", got, used)
	}
	runtime.KeepAlive(batches)
	runtime.KeepAlive(table)
}

// TestRecordsEnd checks that a record ends when the table or the record is full, that the next one
// continues after it, and that no span is lost or repeated.
func TestRecordsEnd(t *testing.T) {
	td := ptrace.NewTraces()
	for i := range 600 { // each with its own service
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", strconv.Itoa(i))
		s := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		s.SetSpanID(pcommon.SpanID{byte(i), byte(i >> 8), 1})
		s.Attributes().PutStr("text", strings.Repeat("x", 100_000))
	}
	body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		t.Fatal(err)
	}
	b := batchOf(t, body, "")
	var tables []*Table
	var records int
	for from := 0; from < b.Len(); {
		table := New(Options{Limits: Limits{Services: 100}})
		tables = append(tables, table)
		for from < b.Len() && !table.Full() {
			r, err := table.Append(b, from)
			if err != nil {
				t.Fatal(err)
			}
			if r.Spans == 0 || sizeOf(r) > maxAppend+400_000 {
				t.Fatalf("record has %d spans and %d bytes", r.Spans, sizeOf(r))
			}
			from += r.Spans
			records++
		}
	}
	rows := 0
	for _, table := range tables {
		if rows += table.Rows(); table.Rows() > 100+yieldEvery {
			t.Errorf("table with %d services has %d rows", 100, table.Rows())
		}
	}
	if rows != b.Len() || len(tables) < 2 || records < 60_000_000/maxAppend {
		t.Errorf("%d rows from %d spans, in %d tables and %d records", rows, b.Len(), len(tables), records)
	}
}
