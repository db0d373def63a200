package tracestore

// placesOf reports whether an expression asks for places of the span and of the trace.
func placesOf(e Expr) (span, trace bool) {
	for f := range Fields(e) {
		if f.Place.OfTrace() {
			trace = true
		} else {
			span = true
		}
	}
	return span, trace
}

// nowhere holds on no span, as nil holds on all.
var nowhere = Or{}

// isNowhere reports whether a simplified expression holds on no span.
func isNowhere(e Expr) bool {
	or, ok := e.(Or)
	return ok && len(or) == 0
}

// simplify returns an expression that holds on the same spans: nil, an Or of nothing, or one without such parts, without lists of one, and
// without lists of a kind within each other.
func simplify(e Expr) Expr {
	switch e := e.(type) {
	case And:
		return simplifyAnd(e)
	case Or:
		return simplifyOr(e)
	case Not:
		switch part := simplify(e.Expr).(type) {
		case nil:
			return nowhere
		case Not:
			return part.Expr
		default:
			if isNowhere(part) {
				return nil
			}
			return Not{part}
		}
	}
	return e
}

func simplifyAnd(e And) Expr {
	var out And
	for _, part := range e {
		part = simplify(part)
		if isNowhere(part) {
			return nowhere
		}
		if and, ok := part.(And); ok {
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

func simplifyOr(e Or) Expr {
	var out Or
	for _, part := range e {
		part = simplify(part)
		if part == nil {
			return nil
		}
		if or, ok := part.(Or); ok {
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

// weaken returns a condition without places of the trace that holds wherever e holds.
func weaken(e Expr) Expr { return simplify(assume(e, true)) }

// assume replaces what is unknown of a span by what makes e hold, or by what makes it fail.
func assume(e Expr, hold bool) Expr {
	switch e := e.(type) {
	case And:
		out := make(And, len(e))
		for i, part := range e {
			out[i] = assume(part, hold)
		}
		return out
	case Or:
		out := make(Or, len(e))
		for i, part := range e {
			out[i] = assume(part, hold)
		}
		return out
	case Not:
		return Not{assume(e.Expr, !hold)}
	case Cond:
		if e.Field.Place.OfTrace() {
			if hold {
				return nil
			}
			return nowhere
		}
	}
	return e
}

// splitTrace splits e into a condition on spans and one on traces that both hold where e does. mixed says that it has a part that is
// neither.
func splitTrace(e Expr) (span, trace Expr, mixed bool) {
	var spans, traces And
	for _, part := range conjuncts(nil, e, false) {
		switch s, t := placesOf(part); {
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

// conjuncts appends conditions that all hold where e does, or where it does not if it is negated.
func conjuncts(dst []Expr, e Expr, negated bool) []Expr {
	var parts []Expr
	switch e := e.(type) {
	case Not:
		return conjuncts(dst, e.Expr, !negated)
	case And:
		if negated {
			return append(dst, Not{e})
		}
		parts = e
	case Or:
		if !negated {
			return append(dst, e)
		}
		parts = e
	default:
		if negated {
			e = Not{e}
		}
		return append(dst, e)
	}
	for _, part := range parts {
		dst = conjuncts(dst, part, negated)
	}
	return dst
}

// simplifySet returns a set that chooses the same spans: one without nil, in which no two selections are alternatives.
func simplifySet(set SpanSet) SpanSet {
	switch s := set.(type) {
	case nil:
		return Select{}
	case Select:
		return Select{simplify(s.Where)}
	case Both:
		return Both{simplifySet(s.Left), simplifySet(s.Right)}
	case Either:
		left, right := simplifySet(s.Left), simplifySet(s.Right)
		l, ok := left.(Select)
		r, both := right.(Select)
		if ok && both {
			return Select{simplify(Or{l.Where, r.Where})}
		}
		return Either{left, right}
	case Below:
		return Below{Above: simplifySet(s.Above), Spans: simplifySet(s.Spans), Direct: s.Direct}
	}
	return set
}

// cover returns a condition on spans that holds on every span that a set chooses, whatever else its trace holds.
func cover(set SpanSet) Expr {
	switch s := set.(type) {
	case Select:
		return weaken(s.Where)
	case Both:
		return simplify(Or{cover(s.Left), cover(s.Right)})
	case Either:
		return simplify(Or{cover(s.Left), cover(s.Right)})
	case Below:
		return cover(s.Spans)
	}
	return nil
}
