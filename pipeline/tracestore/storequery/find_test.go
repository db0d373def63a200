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

// shelf is a store of traces that takes its time and may be damaged. Each trace has a key, by which it is found whatever is asked for,
// unless its name stands alone in the condition.
type shelf struct {
	traces  []tracestore.Trace // the newest first
	pace    time.Duration      // of a result
	damage  string             // what results lack
	damaged otlpdata.TraceID
}

var errDamaged = errors.New("a block is damaged")

// newShelf returns traces of two spans, a parent and a child, with these names.
func newShelf(tb testing.TB, names ...string) *shelf {
	s := &shelf{}
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

func (s *shelf) key(t tracestore.Trace) tracestore.Cursor {
	return tracestore.Cursor{Start: uint64(len(s.traces) - slices.IndexFunc(s.traces, func(o tracestore.Trace) bool { return o.ID == t.ID })), ID: t.ID, Set: true}
}

func (s *shelf) Traces(ctx context.Context, _ string, refs []tracestore.TraceRef) iter.Seq2[tracestore.Trace, error] {
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

func (s *shelf) Find(ctx context.Context, q tracestore.Query, want tracestore.Want) (*tracestore.Results, error) {
	o := tracestore.Outcome{Reason: tracestore.ReasonUnread}
	if s.damage != "" {
		o.Reason += "; " + s.damage
	}
	results := &tracestore.Results{Outcome: func() tracestore.Outcome { return o }}
	_, to, _ := q.Window()
	results.All = func(yield func(tracestore.Result, error) bool) {
		for _, t := range s.traces {
			k := s.key(t)
			r := tracestore.Result{ID: t.ID, Start: k.Start}
			if k.Start > to || !isAfter(r, q.After) || !s.holds(q.Where, t) {
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
		o.Complete, o.Reason = s.damage == "", s.damage
	}
	return results, nil
}

func (s *shelf) holds(e tracestore.Expr, t tracestore.Trace) (some bool) {
	err := tracestore.WalkSpans(t.Spans, func(sp tracestore.Span) error {
		some = some || tracestore.Match(e, sp)
		return nil
	})
	return some && err == nil
}

// manyNames returns n names, of which each step-th is "rare".
func manyNames(n, step int) []string {
	names := slices.Repeat([]string{"often"}, n)
	for i := step - 1; i < n; i += step {
		names[i] = "rare"
	}
	return names
}

// found runs a search to its end.
func found(t *testing.T, ctx context.Context, r tracestore.Reader, q tracestore.Query, set SpanSet, want tracestore.Want) (ids []otlpdata.TraceID, o tracestore.Outcome) {
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

// rareSets find the traces that are called rare, each in a way of its own.
func rareSets() map[string]SpanSet {
	return map[string]SpanSet{
		"facts":     Select{tracestore.Cond{Field: tracestore.Field{Place: tracestore.RootName}, Value: tracestore.Text("rare")}},
		"structure": Descendant{Ancestors: namedSpans("rare"), Spans: Select{}},
	}
}

// TestFindTime: a search whose time is nearly over says how far it got, and who goes on from there gets everything.
func TestFindTime(t *testing.T) {
	for name, set := range rareSets() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newShelf(t, manyNames(60, 7)...)
				store.pace = time.Second
				var all []otlpdata.TraceID
				var q tracestore.Query
				rounds := 0
				for {
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
					ids, o := found(t, ctx, store, q, set, tracestore.WantFull)
					cancel()
					rounds++
					all = append(all, ids...)
					if o.Complete {
						break
					}
					if !o.Next.Set || o.Reason != lateReason || rounds > 9 {
						t.Fatalf("round %d ends with %+v", rounds, o)
					}
					q.After = o.Next
				}
				if want, _ := found(t, t.Context(), store, tracestore.Query{}, set, tracestore.WantIDs); !slices.Equal(all, want) || len(want) != 8 || rounds < 3 {
					t.Errorf("%d rounds of 20 s find %v, want %v", rounds, all, want)
				}
			})
		})
	}
}

// TestFindDamage: what cannot be read is told, also where the limit is reached, and the rest is found.
func TestFindDamage(t *testing.T) {
	for name, set := range rareSets() {
		t.Run(name, func(t *testing.T) {
			store := newShelf(t, manyNames(30, 5)...)
			store.damage = "half of it is gone"
			for _, limit := range []int{0, 1, 6} {
				ids, o := found(t, t.Context(), store, tracestore.Query{Limit: limit}, set, tracestore.WantFull)
				if o.Complete || o.Reason != store.damage || len(ids) != cmp.Or(limit, 6) || o.Next.Set != (limit > 0) {
					t.Errorf("limit %d: %d results, %+v", limit, len(ids), o)
				}
			}
		})
	}
	store := newShelf(t, manyNames(30, 5)...)
	store.damaged = store.traces[4].ID
	ids, o := found(t, t.Context(), store, tracestore.Query{}, rareSets()["facts"], tracestore.WantFull)
	if len(ids) != 5 || o.Complete || !strings.Contains(o.Reason, errDamaged.Error()) {
		t.Errorf("%d results, %+v, want 5 and the damage", len(ids), o)
	}
}

// TestRareAncestors: what stands above, if it is rare, is asked for before all traces are looked at.
func TestRareAncestors(t *testing.T) {
	const traces, most = 2000, 300
	store := newShelf(t, append(manyNames(traces, traces), "rare")...)
	rare, none := rareSets()["structure"], Descendant{Ancestors: namedSpans("none"), Spans: Select{}}
	for _, tc := range []struct {
		set  SpanSet
		want int
	}{
		{rare, 2}, {none, 0}, {Or{none, rare}, 2}, {Or{none, And{none, Select{}}}, 0}, {Descendant{Ancestors: none, Spans: Select{}}, 0},
	} {
		ids, o := found(t, t.Context(), store, tracestore.Query{}, tc.set, tracestore.WantSummaries)
		if len(ids) != tc.want || !o.Complete || o.Scanned > most {
			t.Errorf("%#v: %d traces, want %d, %+v", tc.set, len(ids), tc.want, o)
		}
	}
	many := SpanSet(Select{})
	for i := range 100 {
		many = And{many, namedSpans(fmt.Sprint("n", i/2))}
	}
	if n := len(needs(many)); n != mostNeeds {
		t.Errorf("%d needs are asked for", n)
	}
}

// TestVisitSelectedEnds: a trace with many spans and conditions is not evaluated to the end when nobody waits for it.
func TestVisitSelectedEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := newShelf(t, "a").traces[0]
	for name, set := range rareSets() {
		if err := VisitSelected(ctx, set, b.ID, func(tracestore.Span) error { return nil }, b.Spans); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, want context.Canceled", name, err)
		}
	}
}
