package storetest

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// rewriting is a planner that answers another question.
func rewriting(change func(q *tracestore.Query, set tracestore.SpanSet) tracestore.SpanSet) planner {
	return func(
		ctx context.Context, r tracestore.Reader, q tracestore.Query, set tracestore.SpanSet, want tracestore.Want,
	) (*tracestore.Results, error) {
		set = change(&q, set)
		return tracestore.FindSet(ctx, r, q, set, want)
	}
}

// eachSet changes all parts of a set.
func eachSet(change func(tracestore.SpanSet) tracestore.SpanSet) planner {
	var walk func(set tracestore.SpanSet) tracestore.SpanSet
	walk = func(set tracestore.SpanSet) tracestore.SpanSet {
		switch s := set.(type) {
		case tracestore.Both:
			return change(tracestore.Both{Left: walk(s.Left), Right: walk(s.Right)})
		case tracestore.Either:
			return change(tracestore.Either{Left: walk(s.Left), Right: walk(s.Right)})
		case tracestore.Below:
			return change(tracestore.Below{Above: walk(s.Above), Spans: walk(s.Spans), Direct: s.Direct})
		}
		return change(set)
	}
	return rewriting(func(_ *tracestore.Query, set tracestore.SpanSet) tracestore.SpanSet { return walk(set) })
}

// answering changes the answer of the right planner.
func answering(change func(q tracestore.Query, all []tracestore.Result, o *tracestore.Outcome) []tracestore.Result) planner {
	return func(
		ctx context.Context, r tracestore.Reader, q tracestore.Query, set tracestore.SpanSet, want tracestore.Want,
	) (*tracestore.Results, error) {
		res, err := tracestore.FindSet(ctx, r, q, set, want)
		if err != nil {
			return nil, err
		}
		var all []tracestore.Result
		for r, err := range res.All {
			if err != nil {
				return nil, err
			}
			all = append(all, r)
		}
		o := res.Outcome()
		all = change(q, all, &o)
		return &tracestore.Results{Outcome: func() tracestore.Outcome { return o }, All: func(yield func(tracestore.Result, error) bool) {
			for _, r := range all {
				if !yield(r, nil) {
					return
				}
			}
		}}, nil
	}
}

func ofParts[T tracestore.SpanSet](change func(T) tracestore.SpanSet) planner {
	return eachSet(func(set tracestore.SpanSet) tracestore.SpanSet {
		if s, ok := set.(T); ok {
			return change(s)
		}
		return set
	})
}

// limitedFirst applies the limit to candidates.
func limitedFirst(
	ctx context.Context, r tracestore.Reader, q tracestore.Query, set tracestore.SpanSet, want tracestore.Want,
) (*tracestore.Results, error) {
	candidates, err := r.Find(ctx, q, tracestore.WantIDs)
	if err != nil {
		return nil, err
	}
	var known []tracestore.Result
	for r, err := range candidates.All {
		if err != nil {
			return nil, err
		}
		known = append(known, r)
	}
	return answering(func(_ tracestore.Query, all []tracestore.Result, _ *tracestore.Outcome) []tracestore.Result {
		return slices.DeleteFunc(all, func(r tracestore.Result) bool {
			return !slices.ContainsFunc(known, func(k tracestore.Result) bool { return k.ID == r.ID })
		})
	})(ctx, r, q, set, want)
}

// TestWrongPlannersFail: each wrong planner fails the checks of the promises that it breaks, on a right store.
func TestWrongPlannersFail(t *testing.T) {
	skipShort(t)
	t.Setenv(seedVariable, "1")
	sets, bounds, long, ends, random := "span sets", "windows, pages and budgets of span sets", "span sets of long traces",
		"the context and the caller end a span set", "random span sets"
	byName := make(map[string]check)
	for _, c := range checks() {
		byName[c.name] = c
	}
	for name, w := range map[string]struct {
		plan  planner
		fails []string
	}{
		"both is either":   {ofParts(func(s tracestore.Both) tracestore.SpanSet { return either(s.Left, s.Right) }), []string{sets, bounds, random}},
		"both is the left": {ofParts(func(s tracestore.Both) tracestore.SpanSet { return s.Left }), []string{sets, random}},
		"below is both":    {ofParts(func(s tracestore.Below) tracestore.SpanSet { return both(s.Above, s.Spans) }), []string{sets, random}},
		"parents are ancestors": {ofParts(func(s tracestore.Below) tracestore.SpanSet {
			return below(s.Above, s.Spans)
		}), []string{sets}},
		"ancestors are parents": {ofParts(func(s tracestore.Below) tracestore.SpanSet {
			return directly(s.Above, s.Spans)
		}), []string{sets, long}},
		"upside down": {ofParts(func(s tracestore.Below) tracestore.SpanSet {
			return tracestore.Below{Above: s.Spans, Spans: s.Above, Direct: s.Direct}
		}), []string{sets, bounds, long, random}},
		"all tenants are one": {rewriting(func(q *tracestore.Query, set tracestore.SpanSet) tracestore.SpanSet {
			q.Tenant = ""
			return set
		}), []string{sets, random}},
		"no window": {rewriting(func(q *tracestore.Query, set tracestore.SpanSet) tracestore.SpanSet {
			q.From, q.To = at(0), at(1<<63)
			return set
		}), []string{bounds, random}},
		"no condition": {rewriting(func(q *tracestore.Query, set tracestore.SpanSet) tracestore.SpanSet {
			q.Where = nil
			return set
		}), []string{random}},
		"no cursor": {rewriting(func(q *tracestore.Query, set tracestore.SpanSet) tracestore.SpanSet {
			q.After = tracestore.Cursor{}
			return set
		}), []string{bounds, random}},
		"limits candidates": {limitedFirst, []string{bounds, random}},
		"oldest first": {answering(func(_ tracestore.Query, all []tracestore.Result, _ *tracestore.Outcome) []tracestore.Result {
			slices.Reverse(all)
			return all
		}), []string{sets, bounds, random}},
		"says that all is complete": {answering(func(_ tracestore.Query, all []tracestore.Result, o *tracestore.Outcome) []tracestore.Result {
			*o = tracestore.Outcome{Complete: true, Scanned: o.Scanned}
			return all
		}), []string{bounds, long}},
		"ignores the context": {func(
			ctx context.Context, r tracestore.Reader, q tracestore.Query, set tracestore.SpanSet, want tracestore.Want,
		) (*tracestore.Results, error) {
			return tracestore.FindSet(context.WithoutCancel(ctx), r, q, set, want)
		}, []string{ends}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, check := range w.fails {
				c, ok := byName[check]
				if !ok {
					t.Fatalf("there is no check %q", check)
				}
				c.run = planned(c.run, w.plan)
				if !fails(t, c, newNaive()) {
					t.Errorf("passes %q", check)
				}
			}
		})
	}
}

// planned runs a check with another planner.
func planned(run func(s *suite), plan planner) func(s *suite) {
	return func(s *suite) {
		s.plan = plan
		run(s)
	}
}

// TestSetOracle compares the two evaluations of sets.
func TestSetOracle(t *testing.T) {
	s := newSuite(t, newNaive())
	s.sendKin()
	for _, w := range s.sent.wholes(t, "") {
		for _, set := range []tracestore.SpanSet{
			below(named("a"), named("c")), directly(named("b"), tracestore.Select{}), both(named("a"), named("c")),
		} {
			want := w.chosen(set)
			got := make(map[int]bool)
			for i, chosen := range tracestore.EvaluateSet(set, w.spans) {
				if chosen {
					got[i] = true
				}
			}
			if !maps.Equal(got, want) {
				t.Errorf("trace %s: %s chooses %v, want %v", w.id, describeSet(tracestore.Query{}, set), got, want)
			}
		}
	}
}
