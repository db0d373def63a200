package search

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// However many queries run, no more blocks than allowed are open, and callers that write, stop or ask again while they range block nobody.
func TestDecodersAreBounded(t *testing.T) {
	const decoders, queries = 2, 20
	s := openStore(2, 3, Options{Decoders: decoders})
	w := &world{Rand: rand.New(rand.NewPCG(3, 3))}
	w.send(t, s, 40)
	more := wideTrace(t, 10)
	var running sync.WaitGroup
	for i := range queries {
		running.Go(func() {
			res, err := s.Find(t.Context(), tracestore.Query{}, tracestore.Want(i%3))
			if err != nil {
				t.Errorf("Find: %v", err)
				return
			}
			n := 0
			for r, err := range res.All {
				if err != nil {
					t.Errorf("Find: %v", err)
				}
				if n++; n > i {
					break
				}
				must(s.Consume(t.Context(), more))
				for _, err := range s.Traces(t.Context(), "", []tracestore.TraceRef{{ID: r.ID}}) {
					if err != nil {
						t.Errorf("Traces: %v", err)
					}
				}
				if _, err := s.AttributeValues(t.Context(), "", "k", "", 0); err != nil {
					t.Errorf("AttributeValues: %v", err)
				}
			}
		})
	}
	running.Wait()
	if most := s.gauge.most.Load(); most > decoders || most == 0 {
		t.Errorf("%d blocks were open at once, want at most %d", most, decoders)
	}
	if open, views := s.gauge.open.Load(), s.views.Load(); open != 0 || views != 0 {
		t.Errorf("%d blocks are still open, %d views are not released", open, views)
	}
}

// A query that waits for a decoder ends with its context.
func TestWaitingForADecoderEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := openStore(1, 4, Options{Decoders: 1})
		must(s.Consume(t.Context(), wideTrace(t, 10)))
		s.decoders <- struct{}{}
		ctx, cancel := context.WithCancel(t.Context())
		var failed error
		go func() {
			for _, err := range s.Traces(ctx, "", []tracestore.TraceRef{{ID: otlpdata.TraceID{1}}}) {
				failed = err
			}
		}()
		synctest.Wait()
		if failed != nil {
			t.Errorf("ended while it had to wait: %v", failed)
		}
		cancel()
		synctest.Wait()
		if !errors.Is(failed, context.Canceled) {
			t.Errorf("ended with %v, want the error of the context", failed)
		}
	})
}

// Views are released when results were ranged over, in whole or in part, and when nobody ever does.
func TestViewsAreReleased(t *testing.T) {
	s := openStore(1, 5, Options{})
	must(s.Consume(t.Context(), wideTrace(t, 10)))
	find := func() *tracestore.Results {
		res, err := s.Find(t.Context(), tracestore.Query{}, tracestore.WantIDs)
		must(err)
		return res
	}
	for range find().All {
		break
	}
	if n := s.views.Load(); n != 0 {
		t.Errorf("%d views are held after the caller stopped", n)
	}
	res := find()
	for range res.All {
	}
	first := res.Outcome()
	for r := range res.All {
		t.Errorf("the second time there is %v", r)
	}
	if second := res.Outcome(); !first.Complete || second != first {
		t.Errorf("the outcome was %+v and is %+v", first, second)
	}
	find()
	s.waitForViews()
	if _, err := s.Find(t.Context(), tracestore.Query{From: at(2), To: at(1)}, tracestore.WantIDs); err != nil || s.views.Load() != 0 {
		t.Errorf("an empty window: %v, %d views", err, s.views.Load())
	}
}

// waitForViews waits until the garbage collector has released all views. The deadline of all tests ends it.
func (s *store) waitForViews() {
	for s.views.Load() != 0 {
		runtime.GC()
	}
}

// series makes an honest source of blocks of spans, one trace and one order for each span, the blocks a second apart. Spans of block b take
// a millisecond more than those of the block before.
func series(tb testing.TB, blocks, spans int) *store {
	tb.Helper()
	s := openStore(1, 7, Options{})
	s.tables[0].honest, s.tables[0].intern.plain = true, true
	for b := range blocks {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", "cart")
		ss := rs.ScopeSpans().AppendEmpty()
		for i := range spans {
			n := b*spans + i
			sp := ss.Spans().AppendEmpty()
			sp.SetTraceID(pcommon.TraceID{1, byte(n >> 16), byte(n >> 8), byte(n)})
			sp.SetStartTimestamp(pcommon.Timestamp(base + uint64(b)*1e9 + uint64(i)))
			sp.SetEndTimestamp(sp.StartTimestamp() + pcommon.Timestamp(1+b)*1e6)
			sp.SetName(fmt.Sprint("operation ", i%10))
			sp.Attributes().PutStr("order", fmt.Sprint("order-", n))
			sp.Attributes().PutInt("size", int64(n%100))
		}
		var all []tracestore.Span
		must(tracestore.WalkSpans(encode(tb, td), func(sp tracestore.Span) error {
			all = append(all, cloneSpan(sp))
			return nil
		}))
		s.tables[0].add("", all, spans)
	}
	return s
}

func attribute(op tracestore.Op, key string, value tracestore.Literal) tracestore.Expr {
	return tracestore.Cond{Field: tracestore.Field{Place: tracestore.AnyAttribute, Key: key}, Op: op, Value: value}
}

func property(p tracestore.Place, op tracestore.Op, value tracestore.Literal) tracestore.Expr {
	return tracestore.Cond{Field: tracestore.Field{Place: p}, Op: op, Value: value}
}

// Blocks that cannot contribute stay closed.
func TestBlocksStayClosed(t *testing.T) {
	const blocks = 40
	s := series(t, blocks, 10)
	text := tracestore.Text
	secondPage := tracestore.Cursor{Start: base + 39e9, ID: otlpdata.TraceID{1}, Set: true}
	unlike := func(order string) tracestore.Expr {
		return tracestore.Not{Expr: attribute(tracestore.Eq, "order", text(order))}
	}
	for name, c := range map[string]struct {
		q             tracestore.Query
		opened, found int
	}{
		"everything":  {tracestore.Query{}, blocks, 400},
		"newest only": {tracestore.Query{Limit: 10}, 1, 10},
		"one window":  {tracestore.Query{From: at(base), To: at(base + 9)}, 1, 10},
		// That of the cursor, the next one, and for each result that of its trace: was it listed before?
		"next page":         {tracestore.Query{Limit: 10, After: secondPage}, 12, 10},
		"unknown service":   {tracestore.Query{Where: property(tracestore.Service, tracestore.Eq, text("none"))}, 0, 0},
		"unknown operation": {tracestore.Query{Where: property(tracestore.Name, tracestore.Eq, text("none"))}, 0, 0},
		"unknown key":       {tracestore.Query{Where: attribute(tracestore.Exists, "none", text(""))}, 0, 0},
		"impossible length": {tracestore.Query{Where: property(tracestore.Duration, tracestore.Gt, tracestore.Number(42e6))}, 0, 0},
		// The longest spans of the blocks before are of 34 to 40 ms, which is one step.
		"longest":           {tracestore.Query{Where: property(tracestore.Duration, tracestore.Ge, tracestore.Number(40e6))}, 7, 10},
		"unique text":       {tracestore.Query{Where: attribute(tracestore.Eq, "order", text("order-17"))}, 1, 1},
		"not a unique text": {tracestore.Query{Limit: 9, Where: unlike("order-395")}, 1, 9},
		"absent text":       {tracestore.Query{Where: attribute(tracestore.Eq, "order", text("order-400"))}, 0, 0},
		"text for a number": {tracestore.Query{Where: attribute(tracestore.Eq, "size", text("many"))}, 0, 0},
		"number for a text": {tracestore.Query{Where: attribute(tracestore.Eq, "order", tracestore.Number(1))}, 0, 0},
		"two of three": {tracestore.Query{Where: tracestore.Or{attribute(tracestore.Eq, "order", text("order-17")),
			attribute(tracestore.Eq, "order", text("order-233")), attribute(tracestore.Eq, "order", text("none"))}}, 2, 2},
	} {
		before := s.gauge.total.Load()
		got, _ := s.ask(t, c.q, tracestore.WantIDs)
		if n := int(s.gauge.total.Load() - before); n != c.opened || len(got) != c.found {
			t.Errorf("%s: %d results of %d blocks, want %d of %d", name, len(got), n, c.found, c.opened)
		}
	}
}
