package find

import (
	"reflect"
	"runtime"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TestViewsAreReleased checks that views are released after all or some of the results were
// iterated over, and when the results are not used.
func TestViewsAreReleased(t *testing.T) {
	s := openStore(1, 5, scan.Options{})
	scantest.Must(s.Consume(t.Context(), scantest.WideTrace(t, 10)))
	find := func() *tracestore.Results {
		res, err := s.Find(t.Context(), tracestore.Query{}, tracestore.WantIDs)
		scantest.Must(err)
		return res
	}
	for range find().All {
		break
	}
	if n := s.Views.Load(); n != 0 {
		t.Errorf("%d views left after the caller stopped", n)
	}
	res := find()
	for range res.All {
	}
	first := res.Outcome()
	for r := range res.All {
		t.Errorf("second iteration returned %v", r)
	}
	if second := res.Outcome(); !first.Complete() || !reflect.DeepEqual(second, first) {
		t.Errorf("outcome changed from %+v to %+v", first, second)
	}
	find()
	s.waitForViews()
	empty := tracestore.Query{From: scantest.At(2), To: scantest.At(1)}
	if _, err := s.Find(t.Context(), empty, tracestore.WantIDs); err != nil || s.Views.Load() != 0 {
		t.Errorf("empty window: error %v, %d views left", err, s.Views.Load())
	}
}

// waitForViews waits until the garbage collector has released all views. The timeout of the test
// run ends it.
func (s *store) waitForViews() {
	for s.Views.Load() != 0 {
		runtime.GC()
	}
}

// TestBlocksStayClosed checks that blocks without matches are not opened.
func TestBlocksStayClosed(t *testing.T) {
	const blocks = 40
	f := scantest.Series(t, blocks, 10)
	s := &store{f, New(scan.NewStore(f.View, scan.Options{}))}
	text := tracestore.Text
	secondPage := tracestore.Cursor{Start: scantest.Start + 39e9, ID: otlpdata.TraceID{1}, Set: true}
	unlike := func(order string) tracestore.Expr {
		return tracestore.Not{Expr: scantest.Attribute(tracestore.Eq, "order", text(order))}
	}
	for name, c := range map[string]struct {
		q             tracestore.Query
		opened, found int
	}{
		"everything":  {tracestore.Query{}, blocks, 400},
		"newest only": {tracestore.Query{Limit: 10}, 1, 10},
		"one window":  {tracestore.Query{From: scantest.At(scantest.Start), To: scantest.At(scantest.Start + 9)}, 1, 10},
		// The block of the cursor, the next one, and for each result the block of its trace, to
		// find out whether it was listed before.
		"next page":         {tracestore.Query{Limit: 10, After: secondPage}, 12, 10},
		"unknown service":   {tracestore.Query{Where: scantest.Property(tracestore.Service, tracestore.Eq, text("none"))}, 0, 0},
		"unknown operation": {tracestore.Query{Where: scantest.Property(tracestore.Name, tracestore.Eq, text("none"))}, 0, 0},
		"unknown key":       {tracestore.Query{Where: scantest.Attribute(tracestore.Exists, "none", text(""))}, 0, 0},
		"impossible length": {tracestore.Query{Where: scantest.Property(tracestore.Duration, tracestore.Gt, tracestore.Number(42e6))}, 0, 0},
		// The longest spans of the seven newest blocks take 34 to 40 ms, which is one step of
		// source.Step.
		"longest":           {tracestore.Query{Where: scantest.Property(tracestore.Duration, tracestore.Ge, tracestore.Number(40e6))}, 7, 10},
		"unique text":       {tracestore.Query{Where: scantest.Attribute(tracestore.Eq, "order", text("order-17"))}, 1, 1},
		"not a unique text": {tracestore.Query{Limit: 9, Where: unlike("order-395")}, 1, 9},
		"absent text":       {tracestore.Query{Where: scantest.Attribute(tracestore.Eq, "order", text("order-400"))}, 0, 0},
		"text for a number": {tracestore.Query{Where: scantest.Attribute(tracestore.Eq, "size", text("many"))}, 0, 0},
		"number for a text": {tracestore.Query{Where: scantest.Attribute(tracestore.Eq, "order", tracestore.Number(1))}, 0, 0},
		"two of three": {tracestore.Query{Where: tracestore.Or{scantest.Attribute(tracestore.Eq, "order", text("order-17")),
			scantest.Attribute(tracestore.Eq, "order", text("order-233")), scantest.Attribute(tracestore.Eq, "order", text("none"))}}, 2, 2},
	} {
		before := s.Blocks.Total.Load()
		got, _ := s.ask(t, c.q, tracestore.WantIDs)
		if n := int(s.Blocks.Total.Load() - before); n != c.opened || len(got) != c.found {
			t.Errorf("%s: %d results from %d opened blocks, want %d from %d", name, len(got), n, c.found, c.opened)
		}
	}
}
