package search

import (
	"bytes"
	"cmp"
	"context"
	"math/rand/v2"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	base        = uint64(1_700_000_000_000_000_000)
	randomTimes = 400 // nanoseconds
)

// world makes random spans and questions, and remembers the spans.
type world struct {
	*rand.Rand
	spans []tracestore.Span
}

func (w *world) text() string {
	return []string{"", "a", "b", "true", "7", "2.5", "cart", "AA==", "op-1", "op-2"}[w.IntN(10)]
}

func (w *world) key() string { return []string{"k", "l", "m"}[w.IntN(3)] }

func (w *world) attributes(m pcommon.Map) {
	for range w.IntN(4) {
		switch k := w.key(); w.IntN(7) {
		case 0:
			m.PutBool(k, w.IntN(2) == 0)
		case 1:
			m.PutInt(k, int64(w.IntN(8)))
		case 2:
			m.PutDouble(k, 2.5)
		case 3:
			m.PutEmptySlice(k).AppendEmpty().SetStr(w.text())
		default:
			m.PutStr(k, w.text())
		}
	}
}

// send stores requests of random spans.
func (w *world) send(tb testing.TB, s *store, requests int) {
	tb.Helper()
	for range requests {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", w.text())
		w.attributes(rs.Resource().Attributes())
		ss := rs.ScopeSpans().AppendEmpty()
		ss.Scope().SetName(w.text())
		for range w.IntN(30) {
			w.span(ss.Spans().AppendEmpty())
		}
		b := encode(tb, td)
		must(tracestore.WalkSpans(b, func(sp tracestore.Span) error {
			w.spans = append(w.spans, cloneSpan(sp))
			return nil
		}))
		must(s.Consume(tb.Context(), b))
	}
}

func encode(tb testing.TB, td ptrace.Traces) *otlpdata.Batch {
	tb.Helper()
	enc, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	must(err)
	b, err := otlpdata.FromOTLP(enc, otlpdata.Meta{}, otlpdata.Limits{})
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func (w *world) span(s ptrace.Span) {
	s.SetTraceID(pcommon.TraceID{0: byte(w.IntN(2)), 15: byte(w.IntN(40))})
	s.SetSpanID(pcommon.SpanID{7: byte(w.IntN(60))})
	s.SetParentSpanID(pcommon.SpanID{7: byte(w.IntN(60))})
	s.SetName(w.text())
	s.SetStartTimestamp(pcommon.Timestamp(base + w.Uint64N(randomTimes)))
	s.SetEndTimestamp(s.StartTimestamp() + pcommon.Timestamp(w.IntN(9)))
	s.SetKind(ptrace.SpanKind(w.IntN(6)))
	s.Status().SetCode(ptrace.StatusCode(w.IntN(3)))
	s.Status().SetMessage(w.text())
	w.attributes(s.Attributes())
	for range w.IntN(3) {
		e := s.Events().AppendEmpty()
		e.SetName(w.text())
		w.attributes(e.Attributes())
	}
	if w.IntN(4) == 0 {
		w.attributes(s.Links().AppendEmpty().Attributes())
	}
}

func (w *world) cond() tracestore.Cond {
	c := tracestore.Cond{Op: tracestore.Op(w.IntN(int(tracestore.Exists) + 1)), Value: tracestore.Text(w.text())}
	if w.IntN(2) == 0 {
		c.Op = tracestore.Eq
	}
	c.Field = tracestore.Field{Place: tracestore.Place(w.IntN(int(tracestore.ParentID) + 1)), Key: w.key()}
	switch {
	case c.Op == tracestore.Like:
		c.Value = tracestore.Pattern(regexp.MustCompile([]string{"a", "^$", "[0-9]$"}[w.IntN(3)]))
	case w.IntN(3) == 0 || c.Field.Place == tracestore.Duration:
		c.Value = tracestore.Number(float64(w.IntN(9)))
	case c.Field.Place == tracestore.ParentID:
		c.Value = tracestore.Text(otlpdata.SpanID{7: byte(w.IntN(60))}.String())
	}
	return c
}

func (w *world) expr(depth int) tracestore.Expr {
	if depth == 0 || w.IntN(4) == 0 {
		return w.cond()
	}
	var parts []tracestore.Expr
	for range 1 + w.IntN(3) {
		parts = append(parts, w.expr(depth-1))
	}
	switch w.IntN(4) {
	case 0:
		return tracestore.Not{Expr: parts[0]}
	case 1:
		return tracestore.Or(parts)
	}
	return tracestore.And(parts)
}

func at(ns uint64) time.Time { return time.Unix(0, int64(ns)) }

func (w *world) query() tracestore.Query {
	q := tracestore.Query{Where: w.expr(3)}
	if w.IntN(2) == 0 {
		q.From = at(base + w.Uint64N(randomTimes))
	}
	if w.IntN(2) == 0 {
		q.To = at(base + w.Uint64N(randomTimes))
	}
	return q
}

// expect answers a query from its definition.
func (w *world) expect(q tracestore.Query) []match {
	from, to, ok := q.Window()
	best := make(map[otlpdata.TraceID]uint64)
	for _, s := range w.spans {
		if ok && s.Start >= from && s.Start <= to && tracestore.Match(q.Where, s) {
			best[s.TraceID] = max(best[s.TraceID], s.Start)
		}
	}
	var out []match
	for id, start := range best {
		if m := (match{start, id}); m.behind(q.After) {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b match) int {
		return cmp.Or(cmp.Compare(b.start, a.start), bytes.Compare(b.trace[:], a.trace[:]))
	})
	if q.Limit > 0 {
		out = out[:min(q.Limit, len(out))]
	}
	return out
}

// ask runs a query to its end.
func (s *store) ask(tb testing.TB, q tracestore.Query, want tracestore.Want) ([]tracestore.Result, tracestore.Outcome) {
	tb.Helper()
	res, err := s.Find(tb.Context(), q, want)
	if err != nil {
		tb.Fatalf("Find: %v", err)
	}
	var out []tracestore.Result
	for r, err := range res.All {
		if err != nil {
			tb.Fatalf("Find: after %d results: %v", len(out), err)
		}
		out = append(out, r)
	}
	return out, res.Outcome()
}

func matches(list []tracestore.Result) (out []match) {
	for _, r := range list {
		out = append(out, match{r.Start, r.ID})
	}
	return out
}

// Whatever a query asks, the answer is that of tracestore.Match on every span.
func TestFindAgreesWithMatch(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	w := &world{Rand: rand.New(rand.NewPCG(seed, 3))}
	s := openStore(3, seed, Options{})
	w.send(t, s, 60)
	for range 150 {
		q := w.query()
		want := w.expect(q)
		got, outcome := s.ask(t, q, tracestore.WantIDs)
		if !slices.Equal(matches(got), want) || !outcome.Complete {
			t.Fatalf("%+v:\n got %v %+v\nwant %v", q, matches(got), outcome, want)
		}
	}
	if n := s.views.Load(); n != 0 {
		t.Errorf("%d views are not released", n)
	}
}

// Pages of any budget add up to the whole answer.
func TestBudgetPages(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	w := &world{Rand: rand.New(rand.NewPCG(seed, 7))}
	s := openStore(2, seed, Options{})
	w.send(t, s, 12)
	for range 30 {
		q := w.query()
		want := w.expect(q)
		q.Budget.Spans = 1 + w.IntN(100)
		var got []match
		for {
			page, outcome := s.ask(t, q, tracestore.WantIDs)
			got = append(got, matches(page)...)
			if outcome.Complete {
				break
			}
			last := q.After
			if q.After = outcome.Next; !q.After.Set || last.Set && !(match{q.After.Start, q.After.ID}).behind(last) {
				t.Fatalf("%+v: goes on at %v, which is not behind %v", q, q.After, last)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%+v:\n got %v\nwant %v", q, got, want)
		}
	}
}

// A budget is exceeded by no more than the spans of one time in one block.
func TestBudgetBoundsWork(t *testing.T) {
	w := &world{Rand: rand.New(rand.NewPCG(4, 4))}
	s := openStore(2, 4, Options{})
	w.send(t, s, 60)
	q := tracestore.Query{Budget: tracestore.Budget{Spans: 50}, Where: tracestore.Cond{Field: tracestore.Field{Place: tracestore.ParentID},
		Value: tracestore.Text("no span has it")}}
	got, outcome := s.ask(t, q, tracestore.WantIDs)
	if len(got) != 0 || outcome.Complete || outcome.Scanned < 50 || outcome.Scanned > 60 {
		t.Errorf("%d results, %+v", len(got), outcome)
	}
}

// counting is a context that counts how often it is asked whether it has ended.
type counting struct {
	context.Context
	asked atomic.Int32
}

func (c *counting) Err() error {
	c.asked.Add(1)
	return c.Context.Err()
}

// Regular expressions can take long: a query can end between two rows of a block.
func TestPatternsEndWithinBlocks(t *testing.T) {
	w := &world{Rand: rand.New(rand.NewPCG(4, 4))}
	s := openStore(1, 4, Options{})
	w.send(t, s, 100)
	asked := func(op tracestore.Op, v tracestore.Literal) int32 {
		t.Helper()
		ctx := &counting{Context: t.Context()}
		q := tracestore.Query{Where: tracestore.Cond{Field: tracestore.Field{Place: tracestore.EventAttribute, Key: "k"}, Op: op, Value: v}}
		found, err := s.Find(ctx, q, tracestore.WantIDs)
		if err != nil {
			t.Fatal(err)
		}
		for r, err := range found.All {
			t.Errorf("found %s, error %v", r.ID, err)
		}
		return ctx.asked.Load()
	}
	const absent = "no span has it"
	blocks, rows := asked(tracestore.Lt, tracestore.Text("")), asked(tracestore.Like, tracestore.Pattern(regexp.MustCompile(absent)))
	if rows < blocks+200 {
		t.Errorf("asked %d times where blocks are looked at, %d times where rows are", blocks, rows)
	}
}
