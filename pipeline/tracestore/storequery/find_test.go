package storequery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// fakeStore is a slow and possibly damaged store. The key of a trace is its position in the store.
type fakeStore struct {
	WholeTraces

	traces  []tracestore.Trace // newest first
	pace    time.Duration      // time for each result
	damage  string             // the reason why outcomes are incomplete
	damaged otlpdata.TraceID   // a trace that cannot be read
}

var errDamaged = errors.New("damaged block")

// newFakeStore returns a store with one trace for each name: a span with that name and a child.
func newFakeStore(tb testing.TB, names ...string) *fakeStore {
	s := &fakeStore{}
	s.Of = s
	for i, name := range names {
		id := pcommon.TraceID{byte(i >> 8), byte(i), 1}
		spans := batchOf(tb, func(_ ptrace.ResourceSpans, ss ptrace.ScopeSpans, child ptrace.Span) {
			parent := ss.Spans().AppendEmpty()
			for n, sp := range []ptrace.Span{parent, child} {
				sp.SetTraceID(id)
				sp.SetSpanID(pcommon.SpanID{byte(n + 1)})
				sp.SetStartTimestamp(pcommon.Timestamp(len(names) - i))
				sp.SetEndTimestamp(pcommon.Timestamp(len(names) - i + 9))
			}
			parent.SetName(name)
			child.SetName("child")
			child.SetParentSpanID(parent.SpanID())
		})
		s.traces = append(s.traces, tracestore.Trace{ID: otlpdata.TraceID(id), Spans: spans})
	}
	return s
}

func (s *fakeStore) key(t tracestore.Trace) tracestore.Cursor {
	i := slices.IndexFunc(s.traces, func(o tracestore.Trace) bool { return o.ID == t.ID })
	return tracestore.Cursor{Start: uint64(len(s.traces) - i), ID: t.ID, Set: true}
}

func (s *fakeStore) Traces(ctx context.Context, _ string, refs []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
	return func(yield func(tracestore.Trace, error) bool) {
		for _, ref := range refs {
			if ref.ID == s.damaged || ctx.Err() != nil {
				yield(tracestore.Trace{}, cmp.Or(ctx.Err(), errDamaged))
				return
			}
			for _, t := range s.traces {
				if t.ID == ref.ID && !yield(t, nil) {
					return
				}
			}
		}
	}
}

func (s *fakeStore) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	o := tracestore.Unread()
	o.Reasons.Add(damageOf(s)...)
	results := &tracestore.Results{Outcome: func() tracestore.Outcome { return o }}
	from, to, _ := q.Window()
	results.All = func(yield func(tracestore.Result, error) bool) {
		for _, t := range s.traces {
			k := s.key(t)
			r := tracestore.Result{ID: t.ID, Start: k.Start}
			if k.Start < from || k.Start > to || !isAfter(r, q.After) || !s.holds(q.Where, t) {
				continue
			}
			o.Scanned += t.Spans.Len()
			time.Sleep(s.pace)
			if ctx.Err() != nil {
				yield(tracestore.Result{}, ctx.Err())
				return
			}
			switch want {
			case tracestore.WantFull:
				r.Spans = t.Spans
			case tracestore.WantSummaries:
				sum, err := Summarize(t.ID, t.Spans)
				if err != nil {
					yield(tracestore.Result{}, err)
					return
				}
				r.Summary = &sum
			}
			if !yield(r, nil) {
				return
			}
		}
		o.Reasons = damageOf(s)
	}
	return results, nil
}

// damageOf says what a store cannot read.
func damageOf(s *fakeStore) tracestore.Reasons {
	return tracestore.Because(tracestore.ReasonDamage, s.damage)
}

func (s *fakeStore) holds(e tracestore.Expr, t tracestore.Trace) (some bool) {
	err := tracestore.WalkSpans(t.Spans, func(sp tracestore.Span) error {
		some = some || tracestore.Match(e, sp)
		return nil
	})
	return some && err == nil
}

// manyNames returns n names: every step-th is "rare", all others are "often".
func manyNames(n, step int) []string {
	names := slices.Repeat([]string{"often"}, n)
	for i := step - 1; i < n; i += step {
		names[i] = "rare"
	}
	return names
}

// find runs a search to its end.
func find(
	t *testing.T, ctx context.Context, r tracestore.Reader, q tracestore.Query, set SpanSet, want tracestore.Want,
) (ids []otlpdata.TraceID, o tracestore.Outcome) {
	t.Helper()
	res, err := Find(ctx, r, q, set, want)
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range res.All {
		if err != nil {
			t.Fatalf("after %d results: %v", len(ids), err)
		}
		ids = append(ids, r.ID)
	}
	return ids, res.Outcome()
}

// rareSets returns sets that select the traces named "rare", one for each kind of search.
func rareSets() map[string]SpanSet {
	return map[string]SpanSet{
		"summaries":  Select{equals(tracestore.RootName, "rare")},
		"candidates": Relation{Left: namedSpans("rare"), Right: Select{}},
	}
}

// TestFindDeadline checks that a search ends before its deadline with a cursor, and that the
// following pages return everything.
func TestFindDeadline(t *testing.T) {
	for name, set := range rareSets() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newFakeStore(t, manyNames(60, 7)...)
				store.pace = time.Second
				var all []otlpdata.TraceID
				var q tracestore.Query
				rounds := 0
				for {
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					ids, o := find(t, ctx, store, q, set, tracestore.WantFull)
					cancel()
					rounds++
					all = append(all, ids...)
					if o.Complete() {
						break
					}
					if !o.Next.Set || !slices.Equal(o.Reasons, reasonLate) || rounds > 9 {
						t.Fatalf("round %d ends with %+v", rounds, o)
					}
					q.After = o.Next
				}
				want, _ := find(t, t.Context(), store, tracestore.Query{}, set, tracestore.WantIDs)
				if !slices.Equal(all, want) || len(want) != 8 || rounds < 3 {
					t.Errorf("%d rounds of 20 s find %v, want %v", rounds, all, want)
				}
			})
		})
	}
}

// TestFindDamage checks that a damaged store makes the outcome incomplete, also if the limit is
// reached, and that the rest is found.
func TestFindDamage(t *testing.T) {
	for name, set := range rareSets() {
		t.Run(name, func(t *testing.T) {
			store := newFakeStore(t, manyNames(30, 5)...)
			store.damage = "half of the segment is missing"
			for _, limit := range []int{0, 1, 6} {
				ids, o := find(t, t.Context(), store, tracestore.Query{Limit: limit}, set, tracestore.WantFull)
				if !slices.Equal(o.Reasons, damageOf(store)) || len(ids) != cmp.Or(limit, 6) || o.Next.Set != (limit > 0) {
					t.Errorf("limit %d: %d results, %+v", limit, len(ids), o)
				}
			}
		})
	}
	store := newFakeStore(t, manyNames(30, 5)...)
	store.damaged = store.traces[4].ID
	ids, o := find(t, t.Context(), store, tracestore.Query{}, rareSets()["summaries"], tracestore.WantFull)
	if len(ids) != 5 || !o.Has(tracestore.ReasonDamage) || !strings.Contains(o.Text(), errDamaged.Error()) {
		t.Errorf("%d results, %+v, want 5 and the damage", len(ids), o)
	}
}

// TestNarrow checks that a search for descendants of rare spans does not examine all traces.
func TestNarrow(t *testing.T) {
	const traces, maxScanned = 2000, 300
	store := newFakeStore(t, append(manyNames(traces, traces), "rare")...)
	rare, none := rareSets()["candidates"], Relation{Left: namedSpans("none"), Right: Select{}}
	for _, tc := range []struct {
		set  SpanSet
		want int
	}{
		{rare, 2}, {none, 0}, {Or{none, rare}, 2}, {Or{none, And{none, Select{}}}, 0}, {Relation{Left: none, Right: Select{}}, 0},
	} {
		ids, o := find(t, t.Context(), store, tracestore.Query{}, tc.set, tracestore.WantSummaries)
		if len(ids) != tc.want || !o.Complete() || o.Scanned > maxScanned {
			t.Errorf("%#v: %d traces, want %d, %+v", tc.set, len(ids), tc.want, o)
		}
	}
	many := SpanSet(Select{})
	for i := range 100 {
		many = And{many, namedSpans(fmt.Sprint("n", i/2))}
	}
	if n := len(necessaryConditions(many)); n != maxNecessary {
		t.Errorf("%d necessary conditions, want %d", n, maxNecessary)
	}
}

// account counts reserved bytes.
type account struct{ used, most int64 }

func (a *account) Grow(n int64) error {
	a.used += n
	a.most = max(a.most, a.used)
	return nil
}

func (a *account) Shrink(n int64) { a.used -= n }

// TestFindMemory checks that the spans of a candidate are charged once while the search examines
// them or they are pending, and not any more when they are the caller's.
func TestFindMemory(t *testing.T) {
	const size, small = 1 << 20, 256 << 10
	store := newFakeStore(t, "rare", "often", "rare")
	for i := range store.traces {
		id := pcommon.TraceID(store.traces[i].ID)
		filler := batchOf(t, func(_ ptrace.ResourceSpans, _ ptrace.ScopeSpans, sp ptrace.Span) {
			sp.SetTraceID(id)
			sp.SetSpanID(pcommon.SpanID{9})
			sp.Attributes().PutStr("text", strings.Repeat("x", size))
		})
		all, err := otlpdata.Concat(store.traces[i].Spans, filler)
		if err != nil {
			t.Fatal(err)
		}
		store.traces[i].Spans = all
	}
	var a account
	res, err := Find(tracestore.WithAccount(t.Context(), &a), store, tracestore.Query{}, rareSets()["candidates"], tracestore.WantFull)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range res.All {
		if n++; err != nil || a.used > small {
			t.Errorf("result %d: %d bytes are reserved, want at most %d, %v", n, a.used, small, err)
		}
	}
	if n != 2 || a.most < size || a.most > size+small || a.used != 0 {
		t.Errorf("%d results, at most %d bytes were reserved, %d afterwards", n, a.most, a.used)
	}
}

// TestVisitSelectedCancel checks that the evaluation of a trace can be canceled.
func TestVisitSelectedCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := newFakeStore(t, "a").traces[0]
	for name, set := range rareSets() {
		if err := VisitSelected(ctx, set, b.ID, false, func(tracestore.Span) error { return nil }, b.Spans); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want context.Canceled", name, err)
		}
	}
}
