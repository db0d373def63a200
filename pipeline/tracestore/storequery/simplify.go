package storequery

import "github.com/tracing-backend/tracing/pipeline/tracestore"

// PlacesOf reports whether an expression uses fields that differ between the spans of a trace, and
// fields that depend on the whole trace.
func PlacesOf(e tracestore.Expr) (span, trace bool) {
	for f := range tracestore.Fields(e) {
		trace = trace || f.Place.OfTrace()
		span = span || f.Place.OfSpan()
	}
	return span, trace
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
	case tracestore.Cond:
		if p := e.Field.Place; ofTrace && p.OfTrace() || !ofTrace && p.OfSpan() {
			if hold {
				return nil
			}
			return matchNone
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
	switch s := set.(type) {
	case nil:
		return Select{}
	case Select:
		return Select{simplify(s.Where)}
	case And:
		return And{simplifySet(s.Left), simplifySet(s.Right)}
	case Or:
		left, right := simplifySet(s.Left), simplifySet(s.Right)
		l, ok := left.(Select)
		r, ok2 := right.(Select)
		if ok && ok2 {
			return Select{simplify(tracestore.Or{l.Where, r.Where})}
		}
		return Or{left, right}
	case Descendant:
		return Descendant{Ancestors: simplifySet(s.Ancestors), Spans: simplifySet(s.Spans)}
	case Child:
		return Child{Parents: simplifySet(s.Parents), Spans: simplifySet(s.Spans)}
	}
	return set
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
	case Descendant:
		return cover(s.Spans)
	case Child:
		return cover(s.Spans)
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
	case Descendant:
		return simplify(tracestore.And{coverTrace(s.Ancestors), coverTrace(s.Spans)})
	case Child:
		return simplify(tracestore.And{coverTrace(s.Parents), coverTrace(s.Spans)})
	}
	return nil
}
