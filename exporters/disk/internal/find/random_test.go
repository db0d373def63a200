package find

import (
	"bytes"
	"cmp"
	"context"
	"math/rand/v2"
	"regexp"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan/scantest"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// expect returns the result of a query by definition.
func expect(w *scantest.Generator, q tracestore.Query) []match {
	from, to, ok := q.Window()
	best := make(map[otlpdata.TraceID]uint64)
	for _, s := range w.Spans {
		if ok && s.Start >= from && s.Start <= to && tracestore.Match(q.Where, s) {
			best[s.TraceID] = max(best[s.TraceID], s.Start)
		}
	}
	var out []match
	for id, start := range best {
		if m := (match{start, id}); m.isAfter(q.After) {
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

// TestFindAgreesWithMatch compares the results of random queries with tracestore.Match on every
// span.
func TestFindAgreesWithMatch(t *testing.T) {
	seed := soak.Seed(t)
	w := &scantest.Generator{Rand: rand.New(rand.NewPCG(seed, 3))}
	s := openStore(3, seed, scan.Options{})
	w.Send(t, s, 60)
	for range 150 {
		q := w.Query()
		want := expect(w, q)
		got, outcome := s.ask(t, q, tracestore.WantIDs)
		if !slices.Equal(matches(got), want) || !outcome.Complete() {
			t.Fatalf("%+v:\n got %v %+v\nwant %v", q, matches(got), outcome, want)
		}
	}
	if n := s.Views.Load(); n != 0 {
		t.Errorf("%d views left", n)
	}
}

// TestBudgetPages checks that the pages of a query with a budget together equal the whole answer.
func TestBudgetPages(t *testing.T) {
	seed := soak.Seed(t)
	w := &scantest.Generator{Rand: rand.New(rand.NewPCG(seed, 7))}
	s := openStore(2, seed, scan.Options{})
	w.Send(t, s, 12)
	for range 30 {
		q := w.Query()
		want := expect(w, q)
		q.Budget.Spans = 1 + w.IntN(100)
		var got []match
		for {
			page, outcome := s.ask(t, q, tracestore.WantIDs)
			got = append(got, matches(page)...)
			if outcome.Complete() {
				break
			}
			last := q.After
			if q.After = outcome.Next; !q.After.Set || last.Set && !(match{q.After.Start, q.After.ID}).isAfter(last) {
				t.Fatalf("%+v: next page starts at %v, which is not after %v", q, q.After, last)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%+v:\n got %v\nwant %v", q, got, want)
		}
	}
}

// TestBudgetBoundsWork checks that a query examines at most as many spans more than its budget as
// one block has with the same start.
func TestBudgetBoundsWork(t *testing.T) {
	w := &scantest.Generator{Rand: rand.New(rand.NewPCG(4, 4))}
	s := openStore(2, 4, scan.Options{})
	w.Send(t, s, 60)
	q := tracestore.Query{Budget: tracestore.Budget{Spans: 50}, Where: tracestore.Cond{Field: tracestore.Field{Place: tracestore.ParentID},
		Value: tracestore.Text("no span has it")}}
	got, outcome := s.ask(t, q, tracestore.WantIDs)
	if len(got) != 0 || outcome.Complete() || outcome.Scanned < 50 || outcome.Scanned > 60 {
		t.Errorf("%d results with outcome %+v; want none, after 50 to 60 spans", len(got), outcome)
	}
}

// counting is a context that counts calls of Err.
type counting struct {
	context.Context
	asked atomic.Int32
}

func (c *counting) Err() error {
	c.asked.Add(1)
	return c.Context.Err()
}

// TestPatternsEndWithinBlocks checks that a query with a regular expression checks its context
// between rows, because matching can take long.
func TestPatternsEndWithinBlocks(t *testing.T) {
	w := &scantest.Generator{Rand: rand.New(rand.NewPCG(4, 4))}
	s := openStore(1, 4, scan.Options{})
	w.Send(t, s, 100)
	asked := func(op tracestore.Op, v tracestore.Literal) int32 {
		t.Helper()
		ctx := &counting{Context: t.Context()}
		q := tracestore.Query{Where: tracestore.Cond{Field: tracestore.Field{Place: tracestore.EventAttribute, Key: "k"}, Op: op, Value: v}}
		found, err := s.Find(ctx, q, tracestore.WantIDs)
		if err != nil {
			t.Fatal(err)
		}
		for r, err := range found.All {
			t.Errorf("unexpected result %s, error %v", r.ID, err)
		}
		return ctx.asked.Load()
	}
	const absent = "no span has it"
	blocks, rows := asked(tracestore.Lt, tracestore.Text("")), asked(tracestore.Like, tracestore.Pattern(regexp.MustCompile(absent)))
	if rows < blocks+200 {
		t.Errorf("context checked %d times without and %d times with a regular expression", blocks, rows)
	}
}
