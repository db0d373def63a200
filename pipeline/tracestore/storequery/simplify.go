package storequery

import (
	"encoding/hex"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// PlacesOf reports whether an expression uses fields that differ between the spans of a trace, and
// fields that depend on the whole trace.
func PlacesOf(e tracestore.Expr) (span, trace bool) {
	for f := range tracestore.Fields(e) {
		trace = trace || f.OfTrace()
		span = span || f.OfSpan()
	}
	return span || hasCompare(e), trace || hasCompare(e)
}

// hasCompare reports whether an expression has a comparison of computed values.
func hasCompare(e tracestore.Expr) bool {
	switch e := e.(type) {
	case tracestore.And:
		return slices.ContainsFunc(e, hasCompare)
	case tracestore.Or:
		return slices.ContainsFunc(e, hasCompare)
	case tracestore.Not:
		return hasCompare(e.Expr)
	case tracestore.Compare:
		return true
	}
	return false
}

// matchNone holds for no span, as nil holds for all.
var matchNone = tracestore.Or{}

// isMatchNone reports whether a simplified expression holds for no span.
func isMatchNone(e tracestore.Expr) bool {
	or, ok := e.(tracestore.Or)
	return ok && len(or) == 0
}

// simplify returns an equivalent expression in normal form: nil (matches everything), matchNone, or
// an expression in which no operand is nil or matchNone, each And and Or has at least two operands,
// no And is an operand of an And, and no Or is an operand of an Or.
func simplify(e tracestore.Expr) tracestore.Expr {
	switch e := e.(type) {
	case tracestore.And:
		return simplifyAnd(e)
	case tracestore.Or:
		return simplifyOr(e)
	case tracestore.Not:
		switch part := simplify(e.Expr).(type) {
		case nil:
			return matchNone
		case tracestore.Not:
			return part.Expr
		default:
			if isMatchNone(part) {
				return nil
			}
			return tracestore.Not{Expr: part}
		}
	}
	return e
}

func simplifyAnd(e tracestore.And) tracestore.Expr {
	var out tracestore.And
	for _, part := range e {
		part = simplify(part)
		if isMatchNone(part) {
			return matchNone
		}
		if and, ok := part.(tracestore.And); ok {
			out = append(out, and...)
		} else if part != nil {
			out = append(out, part)
		}
	}
	switch len(out) {
	case 0:
		return nil
	case 1:
		return out[0]
	}
	return out
}

func simplifyOr(e tracestore.Or) tracestore.Expr {
	var out tracestore.Or
	for _, part := range e {
		part = simplify(part)
		if part == nil {
			return nil
		}
		if or, ok := part.(tracestore.Or); ok {
			out = append(out, or...)
		} else {
			out = append(out, part)
		}
	}
	if len(out) == 1 {
		return out[0]
	}
	return out
}

// Weaken returns two conditions that hold for each span for which e holds: one without fields of
// the trace, and one without fields of the span. If exact is true, e holds for each span for which
// both hold.
func Weaken(e tracestore.Expr) (span, trace tracestore.Expr, exact bool) {
	span, trace, mixed := splitTrace(simplify(e))
	if mixed {
		return weaken(e), weakenToTrace(e), false
	}
	return span, trace, true
}

// weaken returns a condition without fields of the trace that holds for each span for which e
// holds.
func weaken(e tracestore.Expr) tracestore.Expr { return simplify(assume(e, true, true)) }

// weakenToTrace returns a condition without fields of the span that holds for each span for which e
// holds.
func weakenToTrace(e tracestore.Expr) tracestore.Expr { return simplify(assume(e, false, true)) }

// assume replaces conditions by constants: conditions on the trace if ofTrace is true, otherwise
// conditions on the span. If hold is true, the result holds for each span for which e may hold;
// otherwise it fails for each span for which e may fail.
func assume(e tracestore.Expr, ofTrace, hold bool) tracestore.Expr {
	switch e := e.(type) {
	case tracestore.And:
		out := make(tracestore.And, len(e))
		for i, part := range e {
			out[i] = assume(part, ofTrace, hold)
		}
		return out
	case tracestore.Or:
		out := make(tracestore.Or, len(e))
		for i, part := range e {
			out[i] = assume(part, ofTrace, hold)
		}
		return out
	case tracestore.Not:
		return tracestore.Not{Expr: assume(e.Expr, ofTrace, !hold)}
	case tracestore.Compare:
		switch {
		case !hold:
			return matchNone
		case ofTrace:
			return e.Needed()
		}
		return nil
	case tracestore.Cond:
		if f := e.Field; ofTrace && f.OfTrace() || !ofTrace && f.OfSpan() {
			switch {
			case !hold:
				return matchNone
			case ofTrace && f.Place == tracestore.EventTime:
				return tracestore.Cond{Field: tracestore.Field{Place: tracestore.EventName}, Op: tracestore.Exists}
			}
			return nil
		}
	}
	return e
}

// splitTrace splits e into a condition on spans and one on traces, such that e holds if and only if
// both hold. mixed is true if e has a part that depends on both.
func splitTrace(e tracestore.Expr) (span, trace tracestore.Expr, mixed bool) {
	var spans, traces tracestore.And
	for _, part := range conjuncts(nil, e, false) {
		switch s, t := PlacesOf(part); {
		case s && t:
			return nil, nil, true
		case t:
			traces = append(traces, part)
		default:
			spans = append(spans, part)
		}
	}
	return simplify(spans), simplify(traces), false
}

// conjuncts appends the conditions whose conjunction is e, or its negation if negated is true.
func conjuncts(dst []tracestore.Expr, e tracestore.Expr, negated bool) []tracestore.Expr {
	var parts []tracestore.Expr
	switch e := e.(type) {
	case tracestore.Not:
		return conjuncts(dst, e.Expr, !negated)
	case tracestore.And:
		if negated {
			return append(dst, tracestore.Not{Expr: e})
		}
		parts = e
	case tracestore.Or:
		if !negated {
			return append(dst, e)
		}
		parts = e
	default:
		if negated {
			e = tracestore.Not{Expr: e}
		}
		return append(dst, e)
	}
	for _, part := range parts {
		dst = conjuncts(dst, part, negated)
	}
	return dst
}

// simplifySet returns an equivalent set without nil and without an Or of two Selects.
func simplifySet(set SpanSet) SpanSet {
	switch s := mapSet(set, simplifySet).(type) {
	case nil:
		return Select{}
	case Select:
		return Select{simplify(s.Where)}
	case Or:
		l, ok := s.Left.(Select)
		r, ok2 := s.Right.(Select)
		if ok && ok2 {
			return Select{simplify(tracestore.Or{l.Where, r.Where})}
		}
		return s
	default:
		return s
	}
}

// Cover returns a condition on single spans that holds for every span that a set may select. nil
// holds for all spans.
func Cover(set SpanSet) tracestore.Expr { return cover(simplifySet(set)) }

// cover returns a condition on single spans that holds for every span that a set may select.
func cover(set SpanSet) tracestore.Expr {
	switch s := set.(type) {
	case Select:
		return weaken(s.Where)
	case And:
		return simplify(tracestore.Or{cover(s.Left), cover(s.Right)})
	case Or:
		return simplify(tracestore.Or{cover(s.Left), cover(s.Right)})
	case Relation:
		if s.Mode == Both {
			return simplify(tracestore.Or{cover(s.Left), cover(s.Right)})
		}
		return cover(s.Right)
	case Pipeline:
		all := tracestore.And{cover(s.Set)}
		for _, stage := range s.Stages {
			if refine, ok := stage.(Refine); ok {
				all = append(all, cover(refine.Set))
			}
		}
		return simplify(all)
	}
	return nil
}

// coverTrace returns a condition on the trace that holds for every trace in which a set may select
// a span.
func coverTrace(set SpanSet) tracestore.Expr {
	switch s := set.(type) {
	case Select:
		return weakenToTrace(s.Where)
	case And:
		return simplify(tracestore.And{coverTrace(s.Left), coverTrace(s.Right)})
	case Or:
		return simplify(tracestore.Or{coverTrace(s.Left), coverTrace(s.Right)})
	case Relation:
		if s.Mode == Unrelated {
			return coverTrace(s.Right)
		}
		return simplify(tracestore.And{coverTrace(s.Left), coverTrace(s.Right)})
	case Pipeline:
		all := tracestore.And{coverTrace(s.Set)}
		for _, stage := range s.Stages {
			if refine, ok := stage.(Refine); ok {
				all = append(all, coverTrace(refine.Set))
			}
		}
		return simplify(all)
	}
	return nil
}

// traceID returns the id of the only trace in which a set may select a span, if there is one.
func traceID(set SpanSet, where tracestore.Expr) (id otlpdata.TraceID, ok bool) {
	for _, part := range conjuncts(conjuncts(nil, coverTrace(set), false), weakenToTrace(where), false) {
		c, isCond := part.(tracestore.Cond)
		if isCond && c.Field.Place == tracestore.TraceID && c.Op == tracestore.Eq {
			if len(c.Value.Text) == hex.EncodedLen(len(id)) {
				_, _ = hex.Decode(id[:], []byte(c.Value.Text)) // of another text no trace is found
			}
			return id, true
		}
	}
	return id, false
}
