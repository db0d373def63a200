package tracestore

import (
	"context"
	"slices"
)

// A search whose candidates are many and rarely results asks whether another condition is rarer: each trace that is found by one selection
// below, or together with, another has a span of either, wherever in time. It is bounded so that asking in vain costs little.
const (
	patience    = 64      // candidates that are looked at before
	mostNarrow  = 512     // traces that meet a rarer condition
	narrowSpans = 1 << 17 // spans that a store examines for one condition
)

// needs returns conditions on spans that each trace has a span for of which a set chooses a span.
func needs(set SpanSet) []Expr {
	switch s := set.(type) {
	case Both:
		return append(needs(s.Left), needs(s.Right)...)
	case Below:
		return append(needs(s.Above), needs(s.Spans)...)
	}
	if e := cover(set); e != nil {
		return []Expr{e}
	}
	return nil
}

// narrow looks at all traces that meet the rarest need, if these are few, so that all results that come behind a place wait. It is false
// where that cannot be known, and leaves things as they were.
func (s *traceSearch) narrow(ctx context.Context, place Cursor) (bool, error) {
	list := needs(s.matcher.set)
	if len(list) < 2 {
		return false, nil
	}
	var rarest []TraceRef
	known := false
	for _, e := range list {
		refs, ok := s.few(ctx, e)
		if ok && (!known || len(refs) < len(rarest)) {
			rarest, known = refs, true
		}
	}
	if !known || ctx.Err() != nil {
		return false, ctx.Err()
	}
	before, held := s.waiting, s.held
	s.waiting, s.held, s.given = nil, 0, place
	if s.lookAtRefs(ctx, rarest) {
		return true, nil
	}
	s.waiting, s.held = before, held
	return false, ctx.Err()
}

// few returns the traces with a span on which a condition holds, if the store knows all of them with little work.
func (s *traceSearch) few(ctx context.Context, e Expr) (refs []TraceRef, ok bool) {
	q := Query{Tenant: s.query.Tenant, Where: e, Limit: mostNarrow, Budget: Budget{Spans: narrowSpans}}
	found, err := s.reader.Find(ctx, q, WantIDs)
	if err != nil {
		return nil, false // some stores cannot answer every question
	}
	for r, err := range found.All {
		if err != nil {
			return nil, false
		}
		refs = append(refs, TraceRef{ID: r.ID})
	}
	o := found.Outcome()
	s.scanned += o.Scanned
	return refs, o.Complete && !o.Next.Set
}

// lookAtRefs looks at traces. It is false where not all could be read, or the budget ran out.
func (s *traceSearch) lookAtRefs(ctx context.Context, refs []TraceRef) bool {
	for part := range slices.Chunk(refs, mostRead) {
		traces, err := readTraces(ctx, s.reader, s.query, part)
		if err != nil {
			return false
		}
		for id, spans := range traces {
			if err := s.lookAt(Result{ID: id, Spans: spans}); err != nil {
				return false
			}
		}
		if b := s.query.Budget.Spans; b > 0 && s.looked >= b {
			return false
		}
	}
	return true
}
