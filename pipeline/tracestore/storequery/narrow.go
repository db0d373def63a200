package storequery

import (
	"context"
	"reflect"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// If many candidates yield few results, the search looks for a rarer condition: each trace that
// matches And or Relation has a span for each operand, at any time. These limits keep the
// cost low if there is no such condition.
const (
	candidatesBeforeNarrowing = 64  // candidates that are examined first
	maxNecessary              = 8   // necessary conditions that are tried
	minNarrowTraces           = 512 // limits of narrowTraces
	maxNarrowTraces           = 1 << 13
	maxNarrowSpans            = 1 << 17 // spans that a store examines for one condition
)

// necessaryConditions returns distinct conditions. Every matching trace has a span for each of
// them. The condition that already finds the candidates is not among them.
func necessaryConditions(set SpanSet) []tracestore.Expr {
	covering := cover(set)
	var out []tracestore.Expr
	for _, e := range appendNecessary(nil, set) {
		same := func(o tracestore.Expr) bool { return reflect.DeepEqual(o, e) }
		if len(out) < maxNecessary && !same(covering) && !slices.ContainsFunc(out, same) {
			out = append(out, e)
		}
	}
	return out
}

// appendNecessary appends the necessary conditions of each part of a set.
func appendNecessary(dst []tracestore.Expr, set SpanSet) []tracestore.Expr {
	switch s := set.(type) {
	case And:
		return appendNecessary(appendNecessary(dst, s.Left), s.Right)
	case Relation:
		if s.Mode != Unrelated {
			dst = appendNecessary(dst, s.Left)
		}
		return appendNecessary(dst, s.Right)
	case Pipeline:
		dst = appendNecessary(dst, s.Set)
		for _, stage := range s.Stages {
			if refine, ok := stage.(Refine); ok {
				dst = appendNecessary(dst, refine.Set)
			}
		}
		return dst
	case Or:
		left, right := appendNecessary(nil, s.Left), appendNecessary(nil, s.Right)
		if len(left) > 0 && len(right) > 0 {
			// One of the many pairs is enough. The first condition of each side is the one on its
			// uppermost spans.
			return append(dst, simplify(tracestore.Or{left[0], right[0]}))
		}
		return dst
	}
	if e := cover(set); e != nil {
		return append(dst, e)
	}
	return dst
}

// narrow examines all traces that meet the rarest necessary condition, if there are few, and
// returns true; all results after the position are then pending. If the budget or time runs out, it
// returns false, and the next step examines the remaining traces.
func (s *candidateSearch) narrow(ctx context.Context, position tracestore.Cursor) (bool, error) {
	s.narrowTried = true
	for _, e := range necessaryConditions(s.matcher.set) {
		refs, ok := s.tracesWith(ctx, e, s.narrowTraces(position))
		if ok && (!s.rareKnown || len(refs) < len(s.rare)) {
			s.rare, s.rareKnown = refs, true
		}
	}
	if !s.rareKnown || ctx.Err() != nil {
		return false, ctx.Err()
	}
	s.passed = position
	return s.examineRare(ctx), ctx.Err()
}

// narrowTraces returns the maximum number of traces that may meet a rarer condition: half of the
// candidates that are likely to be examined otherwise, because rare traces are read one by one. The
// candidates before the position, of all results before it, are examined.
func (s *candidateSearch) narrowTraces(position tracestore.Cursor) int {
	from, to, _ := s.query.Window()
	at := min(max(position.Start, from), to)
	expected := float64(s.tries) * float64(at-from) / float64(to-at+1) // in the rest of the window
	if limit := s.query.Limit; limit > 0 {
		results := s.emitted + len(s.pending)
		expected = min(expected, float64(max(limit-results, 0)*s.tries)/float64(max(results, 1)))
	}
	return int(min(max(expected/2, minNarrowTraces), maxNarrowTraces))
}

// tracesWith returns all traces with a span that meets a condition. ok is false if the number of
// traces reaches limit, or if the store cannot tell cheaply.
func (s *search) tracesWith(ctx context.Context, e tracestore.Expr, limit int) (refs []tracestore.TraceRef, ok bool) {
	q := tracestore.Query{
		Tenant: s.query.Tenant, Where: e, Limit: limit, Budget: tracestore.Budget{Spans: maxNarrowSpans},
	}
	if b := s.query.Budget.Spans; b > 0 {
		q.Budget.Spans = min(maxNarrowSpans, b)
	}
	found, err := s.reader.Find(ctx, q, tracestore.WantIDs)
	if err != nil {
		return nil, false // some stores cannot answer every query
	}
	for r, err := range found.All {
		if err != nil {
			return nil, false
		}
		refs = append(refs, tracestore.TraceRef{ID: r.ID})
	}
	o := found.Outcome()
	s.scanned += o.Scanned
	return refs, o.Complete() && !o.Next.Set
}

// examineRare examines the rare traces that are not known yet. It returns false if one of them
// could not be read, or if the budget or the time is exhausted.
func (s *candidateSearch) examineRare(ctx context.Context) bool {
	for _, ref := range s.rare {
		if _, known := s.known[ref.ID]; known {
			continue
		}
		if b := s.query.Budget.Spans; b > 0 && s.examined >= b || s.late() {
			return false
		}
		spans, err := readTrace(ctx, s.reader, s.query, ref)
		if err != nil {
			s.rareKnown = false // the store may return a part of it as a candidate
			return false
		}
		if spans == nil {
			continue // deleted meanwhile
		}
		if err := s.examine(ctx, tracestore.Result{ID: ref.ID, Spans: spans}); err != nil {
			return false
		}
	}
	return true
}
