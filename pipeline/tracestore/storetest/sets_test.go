package storetest

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// rewritesQuery returns a planner that runs a modified query.
func rewritesQuery(change func(q *tracestore.Query, set storequery.SpanSet) storequery.SpanSet) planner {
	return func(
		ctx context.Context, r tracestore.Reader, q tracestore.Query, set storequery.SpanSet, want tracestore.Want,
	) (*tracestore.Results, error) {
		set = change(&q, set)
		return storequery.Find(ctx, r, q, set, want)
	}
}

// rewritesParts returns a planner that modifies all parts of a set.
func rewritesParts(change func(storequery.SpanSet) storequery.SpanSet) planner {
	var walk func(set storequery.SpanSet) storequery.SpanSet
	walk = func(set storequery.SpanSet) storequery.SpanSet {
		switch s := set.(type) {
		case storequery.And:
			return change(storequery.And{Left: walk(s.Left), Right: walk(s.Right)})
		case storequery.Or:
			return change(storequery.Or{Left: walk(s.Left), Right: walk(s.Right)})
		case storequery.Relation:
			s.Left, s.Right = walk(s.Left), walk(s.Right)
			return change(s)
		}
		return change(set)
	}
	return rewritesQuery(func(_ *tracestore.Query, set storequery.SpanSet) storequery.SpanSet { return walk(set) })
}

// rewritesAnswer returns a planner that modifies the result of storequery.Find.
func rewritesAnswer(change func(q tracestore.Query, all []tracestore.Result, o *tracestore.Outcome) []tracestore.Result) planner {
	return func(
		ctx context.Context, r tracestore.Reader, q tracestore.Query, set storequery.SpanSet, want tracestore.Want,
	) (*tracestore.Results, error) {
		res, err := storequery.Find(ctx, r, q, set, want)
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

func ofParts[T storequery.SpanSet](change func(T) storequery.SpanSet) planner {
	return rewritesParts(func(set storequery.SpanSet) storequery.SpanSet {
		if s, ok := set.(T); ok {
			return change(s)
		}
		return set
	})
}

// ofKind is ofParts for relations of a kind.
func ofKind(kind storequery.RelationKind, change func(storequery.Relation) storequery.SpanSet) planner {
	return ofParts(func(r storequery.Relation) storequery.SpanSet {
		if r.Kind == kind {
			return change(r)
		}
		return r
	})
}

// limitsCandidates is a planner that applies the limit to candidates.
func limitsCandidates(
	ctx context.Context, r tracestore.Reader, q tracestore.Query, set storequery.SpanSet, want tracestore.Want,
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
	return rewritesAnswer(func(_ tracestore.Query, all []tracestore.Result, _ *tracestore.Outcome) []tracestore.Result {
		return slices.DeleteFunc(all, func(r tracestore.Result) bool {
			return !slices.ContainsFunc(known, func(k tracestore.Result) bool { return k.ID == r.ID })
		})
	})(ctx, r, q, set, want)
}

// TestIncorrectPlannersFail checks that the suite detects incorrect planners on a correct store.
func TestIncorrectPlannersFail(t *testing.T) {
	skipShort(t)
	t.Setenv(seedVariable, "2")
	sets, bounds, long, ends, random := "span sets", "windows, pages and budgets of span sets", "span sets on long traces",
		"canceled and stopped span sets", "random span sets"
	byName := make(map[string]check)
	for _, c := range checks() {
		byName[c.name] = c
	}
	for name, w := range map[string]struct {
		plan  planner
		fails []string
	}{
		"And is Or": {ofParts(func(s storequery.And) storequery.SpanSet {
			return or(s.Left, s.Right)
		}), []string{sets, bounds, random}},
		"And is its left side": {ofParts(func(s storequery.And) storequery.SpanSet { return s.Left }), []string{sets, random}},
		"relations are And": {ofParts(func(r storequery.Relation) storequery.SpanSet {
			return and(r.Left, r.Right)
		}), []string{sets, random}},
		"Child is Descendant": {ofKind(storequery.Child, func(r storequery.Relation) storequery.SpanSet {
			return descendant(r.Left, r.Right)
		}), []string{sets}},
		"Descendant is Child": {ofKind(storequery.Descendant, func(r storequery.Relation) storequery.SpanSet {
			return child(r.Left, r.Right)
		}), []string{sets, long}},
		"relations are inverted": {ofParts(func(r storequery.Relation) storequery.SpanSet {
			r.Left, r.Right = r.Right, r.Left
			return r
		}), []string{sets, bounds, long, random}},
		"relations have no mode": {ofParts(func(r storequery.Relation) storequery.SpanSet {
			r.Mode = storequery.Related
			return r
		}), []string{sets, random}},
		"ignores the tenant": {rewritesQuery(func(q *tracestore.Query, set storequery.SpanSet) storequery.SpanSet {
			q.Tenant = ""
			return set
		}), []string{sets, random}},
		"ignores the window": {rewritesQuery(func(q *tracestore.Query, set storequery.SpanSet) storequery.SpanSet {
			q.From, q.To = at(0), at(1<<63)
			return set
		}), []string{bounds, random}},
		"ignores the condition": {rewritesQuery(func(q *tracestore.Query, set storequery.SpanSet) storequery.SpanSet {
			q.Where = nil
			return set
		}), []string{random}},
		"ignores the cursor": {rewritesQuery(func(q *tracestore.Query, set storequery.SpanSet) storequery.SpanSet {
			q.After = tracestore.Cursor{}
			return set
		}), []string{bounds, random}},
		"limits candidates": {limitsCandidates, []string{bounds, random}},
		"oldest first": {rewritesAnswer(func(_ tracestore.Query, all []tracestore.Result, _ *tracestore.Outcome) []tracestore.Result {
			slices.Reverse(all)
			return all
		}), []string{sets, bounds, random}},
		"reports everything as complete": {rewritesAnswer(func(
			_ tracestore.Query, all []tracestore.Result, o *tracestore.Outcome,
		) []tracestore.Result {
			*o = tracestore.Outcome{Scanned: o.Scanned}
			return all
		}), []string{bounds, long}},
		"ignores the context": {func(
			ctx context.Context, r tracestore.Reader, q tracestore.Query, set storequery.SpanSet, want tracestore.Want,
		) (*tracestore.Results, error) {
			return storequery.Find(context.WithoutCancel(ctx), r, q, set, want)
		}, []string{ends}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, check := range w.fails {
				c, ok := byName[check]
				if !ok {
					t.Fatalf("unknown check %q", check)
				}
				c.run = withPlanner(c.run, w.plan)
				if !fails(t, c, newReferenceStore()) {
					t.Errorf("passes %q", check)
				}
			}
		})
	}
}

// withPlanner returns a check that uses another planner.
func withPlanner(run func(s *suite), plan planner) func(s *suite) {
	return func(s *suite) {
		s.plan = plan
		run(s)
	}
}

// TestSetOracle compares the oracle with storequery.Evaluate.
func TestSetOracle(t *testing.T) {
	s := newSuite(t, newReferenceStore())
	s.sendRelated()
	for _, w := range s.sent.fullTraces(t, "") {
		for _, set := range []storequery.SpanSet{
			descendant(named("a"), named("c")), child(named("b"), storequery.Select{}), and(named("a"), named("c")),
		} {
			want := w.selected(set)
			got := make(map[int]bool)
			for i, selected := range storequery.Evaluate(set, w.spans) {
				if selected {
					got[i] = true
				}
			}
			if !maps.Equal(got, want) {
				t.Errorf("trace %s: %s selects %v, want %v", w.id, describeSet(tracestore.Query{}, set), got, want)
			}
		}
	}
}
