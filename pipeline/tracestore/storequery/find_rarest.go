package storequery

import (
	"context"
	"reflect"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// A search whose candidates are many and rarely results asks whether another condition is rarer: each trace that is found by one selection
// below, or together with, another has a span of either, wherever in time. It is bounded so that asking in vain costs little.
const (
	patience    = 64      // candidates that are looked at before
	mostNeeds   = 8       // rarer conditions that are asked for
	mostNarrow  = 512     // traces that meet a rarer condition
	narrowSpans = 1 << 17 // spans that a store examines for one condition
)

// needs returns different conditions on spans that each trace has a span for of which a set chooses a span. That on which candidates are
// found is none of them.
func needs(set SpanSet) []tracestore.Expr {
	found := cover(set)
	var out []tracestore.Expr
	for _, e := range eachNeed(nil, set) {
		same := func(o tracestore.Expr) bool { return reflect.DeepEqual(o, e) }
		if len(out) < mostNeeds && !same(found) && !slices.ContainsFunc(out, same) {
			out = append(out, e)
		}
	}
	return out
}

// eachNeed appends what each part of a set needs.
func eachNeed(dst []tracestore.Expr, set SpanSet) []tracestore.Expr {
	switch s := set.(type) {
	case And:
		return eachNeed(eachNeed(dst, s.Left), s.Right)
	case Descendant:
		return eachNeed(eachNeed(dst, s.Ancestors), s.Spans)
	case Child:
		return eachNeed(eachNeed(dst, s.Parents), s.Spans)
	case Or:
		left, right := eachNeed(nil, s.Left), eachNeed(nil, s.Right)
		if len(left) > 0 && len(right) > 0 {
			// Of the many pairs one is enough: the first of a side is what its uppermost spans must be like.
			return append(dst, simplify(tracestore.Or{left[0], right[0]}))
		}
		return dst
	}
	if e := cover(set); e != nil {
		return append(dst, e)
	}
	return dst
}

// narrow looks at all traces that meet the rarest need, if these are few, so that all results that come behind a place wait. It is false
// where that cannot be known, and leaves things as they were.
func (s *traceSearch) narrow(ctx context.Context, place tracestore.Cursor) (bool, error) {
	var rarest []tracestore.TraceRef
	known := false
	for _, e := range needs(s.matcher.set) {
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
func (s *traceSearch) few(ctx context.Context, e tracestore.Expr) (refs []tracestore.TraceRef, ok bool) {
	q := tracestore.Query{Tenant: s.query.Tenant, Where: e, Limit: mostNarrow, Budget: tracestore.Budget{Spans: narrowSpans}}
	if b := s.query.Budget.Spans; b > 0 {
		q.Budget.Spans = min(narrowSpans, b)
	}
	found, err := s.reader.Find(ctx, q, tracestore.WantIDs)
	if err != nil {
		return nil, false // some stores cannot answer every question
	}
	for r, err := range found.All {
		if err != nil {
			return nil, false
		}
		refs = append(refs, tracestore.TraceRef{ID: r.ID})
	}
	o := found.Outcome()
	s.scanned += o.Scanned
	return refs, o.Complete && !o.Next.Set
}

// lookAtRefs looks at traces. It is false where not all could be read, or the budget or the time ran out.
func (s *traceSearch) lookAtRefs(ctx context.Context, refs []tracestore.TraceRef) bool {
	for _, ref := range refs {
		spans, err := readTrace(ctx, s.reader, s.query, ref)
		if err != nil {
			return false
		}
		if spans == nil {
			continue // it is gone by now
		}
		if err := s.lookAt(ctx, tracestore.Result{ID: ref.ID, Spans: spans}); err != nil {
			return false
		}
		if b := s.query.Budget.Spans; b > 0 && s.looked >= b || s.late() {
			return false
		}
	}
	return true
}
