package storequery

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// TestScramble checks that the first numbers are spread over the range, and that there is each
// number once.
func TestScramble(t *testing.T) {
	for level := range 13 {
		for k := range level + 1 {
			seen := make(map[uint64]bool)
			for i := range uint64(1) << k {
				n := scramble(i, level)
				if n >= 1<<level || seen[n>>(level-k)] {
					t.Fatalf("level %d: number %d is %d; part %d of %d has two", level, i, n, n>>(level-k), 1<<k)
				}
				seen[n>>(level-k)] = true
			}
		}
	}
}

// TestPartAt checks that the parts of a window are not empty and cover it.
func TestPartAt(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	windows := []window{{0, math.MaxUint64, true}, {5, 5, true}, {math.MaxUint64, math.MaxUint64, true}}
	for range 50 {
		from := r.Uint64() >> r.IntN(64)
		windows = append(windows, window{from, from + min(r.Uint64()>>r.IntN(64), math.MaxUint64-from), true})
	}
	for _, w := range windows {
		for level := range 12 {
			if level > 0 && w.to-w.from < 1<<level {
				break
			}
			next := w.from
			for i := range uint64(1) << level {
				p := partAt(w, i, level)
				if p.from != next || p.to < p.from {
					t.Fatalf("%+v, level %d: part %d is %+v, want from %d", w, level, i, p, next)
				}
				next = p.to + 1
			}
			if next != w.to+1 {
				t.Fatalf("%+v, level %d: parts end at %d", w, level, next-1)
			}
		}
	}
}

func TestPartSpread(t *testing.T) {
	f := func(share, want float64, counts ...uint64) {
		t.Helper()
		var p partSpread
		for _, n := range counts {
			p.add(n)
		}
		if got := p.relativeError(share); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v of a share of %g: error %g, want %g", counts, share, got, want)
		}
	}
	f(1, 0, 7)
	f(0.5, 1)
	f(0.5, 1, 0, 0)
	f(0.5, math.Sqrt(0.5), 7)                                 // little is known from one part
	f(0.25, math.Sqrt(0.75*16)/8, 2, 2, 2, 2)                 // nor from a few
	f(0.25, 0, 2, 2, 2, 2, 2, 2, 2, 2)                        // all parts are alike
	f(0.25, math.Sqrt(0.75*8*8/7)/16, 1, 3, 1, 3, 1, 3, 1, 3) // the variance is 8/7
}

// exploredStore is a store of 300 traces, one of 5 named "rare", and the window of all of them.
func exploredStore(t *testing.T) (*fakeStore, tracestore.Query) {
	return newFakeStore(t, manyNames(300, 5)...), tracestore.Query{From: TimeOf(1), To: TimeOf(300)}
}

// TestSampledTraces checks that estimates from samples are close to the true numbers, and that a
// rare condition is counted exactly.
func TestSampledTraces(t *testing.T) {
	store, q := exploredStore(t)
	often := equals(tracestore.RootName, "often")
	for name, set := range map[string]SpanSet{
		"summaries": Select{often}, "candidates": Select{tracestore.Or{often, equals(tracestore.Name, "none")}},
	} {
		for _, q.Budget.Spans = range []int{60, 150, 299, 450, 1300} {
			a := SetAggregation{Traces: true}
			a.Heatmap.Step, a.Exemplars = 10, 5
			got, err := AggregateSet(t.Context(), store, q, set, a)
			if err != nil || !got.Complete() {
				t.Fatalf("%s, budget %d: %+v, %v", name, q.Budget.Spans, got, err)
			}
			estimate, most := float64(got.Spans)/got.Share, 5*max(got.RelativeError, 0.02)*240
			if math.Abs(estimate-240) > most || (got.Share == 1) != (got.Spans == 240) || len(got.Exemplars) != 5 {
				t.Errorf("%s, budget %d: %d traces of a share of %g, error %g", name, q.Budget.Spans, got.Spans, got.Share, got.RelativeError)
			}
			if b := q.Budget.Spans; got.Scanned > 3*b || (b == 1300) != (got.Share == 1) {
				t.Errorf("%s, budget %d: share %g of %d examined spans", name, b, got.Share, got.Scanned)
			}
		}
	}
	q.Budget.Spans = 300
	rare := Relation{Left: namedSpans("rare"), Right: namedSpans("child")}
	got, err := AggregateSet(t.Context(), store, q, rare, SetAggregation{})
	if err != nil || got.Spans != 60 || got.Share != 1 || !got.Complete() {
		t.Errorf("rare condition: %+v, %v", got, err)
	}
}

// TestAggregateSetDeadline checks that counting ends before the deadline and says which share it
// examined.
func TestAggregateSetDeadline(t *testing.T) {
	for name, set := range rareSets() {
		for _, budget := range []int{0, 100, 5000} {
			synctest.Test(t, func(t *testing.T) {
				store, q := exploredStore(t)
				store.pace, q.Budget.Spans = time.Second, budget
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
				defer cancel()
				got, err := AggregateSet(ctx, store, q, set, SetAggregation{Traces: true})
				switch {
				case err != nil || ctx.Err() != nil || got.Share <= 0 || got.Share >= 1 || got.Spans == 0:
					t.Errorf("%s, budget %d: %+v, %v", name, budget, got, err)
				case !got.Complete() && !slices.Equal(got.Reasons, reasonLate):
					t.Errorf("%s, budget %d: reason %q", name, budget, got.Text())
				}
				ctx, cancel = context.WithTimeout(t.Context(), time.Second/2)
				defer cancel()
				if got, err := AggregateSet(ctx, store, q, set, SetAggregation{Traces: true}); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s, budget %d, short deadline: %+v, %v", name, budget, got, err)
				}
			})
		}
	}
}

// TestAggregateSetDamage checks that damage makes a result incomplete, and that the rest is
// counted.
func TestAggregateSetDamage(t *testing.T) {
	for name, set := range rareSets() {
		for _, budget := range []int{0, 200, 5000} {
			store, q := exploredStore(t)
			store.damage, q.Budget.Spans = "half of the segment is missing", budget
			got, err := AggregateSet(t.Context(), store, q, set, SetAggregation{Traces: true})
			if err != nil || !slices.Equal(got.Reasons, damageOf(store)) || got.Spans == 0 {
				t.Errorf("%s, budget %d: %+v, %v", name, budget, got, err)
			}
		}
	}
}

// fullAccount refuses more than a number of bytes.
type fullAccount struct {
	account
	limit int64
}

var errFull = errors.New("memory is used up")

func (a *fullAccount) Grow(n int64) error {
	if a.used+n > a.limit {
		return errFull
	}
	return a.account.Grow(n)
}

// TestAggregateSetMemory checks that all memory is given back, and that too little is an error, or
// a partial result if something was counted before.
func TestAggregateSetMemory(t *testing.T) {
	store, q := exploredStore(t)
	set := rareSets()["candidates"]
	a := SetAggregation{}
	a.Facets.Values = 10
	for _, limit := range []int64{1, 100_000, 1 << 30} {
		account := fullAccount{limit: limit}
		got, err := AggregateSet(tracestore.WithAccount(t.Context(), &account), store, q, set, a)
		switch {
		case account.used != 0:
			t.Errorf("limit %d: %d bytes are still reserved", limit, account.used)
		case limit == 1 && !strings.Contains(got.Text(), errFull.Error()) && !errors.Is(err, errFull):
			t.Errorf("limit %d: %+v, %v", limit, got, err)
		case limit == 1<<30 && (err != nil || !got.Complete() || got.Facets.Spans != 60):
			t.Errorf("limit %d: %+v, %v", limit, got, err)
		}
	}
}

// TestGroupsOfParents groups spans by a field of their parents, and measures another one.
func TestGroupsOfParents(t *testing.T) {
	store, q := exploredStore(t)
	a := SetAggregation{}
	a.Groups = tracestore.GroupQuery{By: []tracestore.Field{{Place: tracestore.Name, Parent: true}}, Limit: 10,
		Measure: tracestore.MeasureTotals, Of: tracestore.Field{Place: tracestore.Duration, Parent: true}}
	got, err := AggregateSet(t.Context(), store, q, nil, a)
	if err != nil || got.Groups == nil {
		t.Fatalf("%+v, %v", got, err)
	}
	if text := describeGroups(got.Groups, 1); text != "-: 300/0; often: 240/0; rare: 60/0" {
		t.Error(text)
	}
	if n := got.Groups.All.Numbers[0]; n.Count != 300 || n.Sum != 300*9 {
		t.Errorf("durations of parents: %+v", n)
	}
}

// TestAggregateSetErrors checks requests that cannot be answered at all.
func TestAggregateSetErrors(t *testing.T) {
	store, q := exploredStore(t)
	a := SetAggregation{Traces: true}
	a.Facets.Values = 1
	if _, err := AggregateSet(t.Context(), store, q, nil, a); !errors.Is(err, errTraceFacets) {
		t.Errorf("facets of traces: %v", err)
	}
	a = SetAggregation{}
	a.Exemplars = -1
	if _, err := AggregateSet(t.Context(), store, q, nil, a); err == nil {
		t.Error("a negative number of exemplars is no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := AggregateSet(ctx, store, q, nil, SetAggregation{}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled context: %v", err)
	}
}
