package traceql

import (
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// isAggregate reports whether a token is the name of an aggregate.
func isAggregate(t token) bool {
	for _, f := range []storequery.AggregateFunc{storequery.Count, storequery.Avg, storequery.Min, storequery.Max, storequery.Sum} {
		if t.isWord(string(f)) {
			return true
		}
	}
	return false
}

// startsScalar reports whether a number follows, perhaps in brackets. In brackets around stages,
// such as (count() > 2), there is a comparison or another stage outside of inner brackets.
func (p *parser) startsScalar() bool {
	at := p.at
	for p.tokens[at].is("(") {
		at++
	}
	if t := p.tokens[at]; t.kind != number && !t.is("-") && !isAggregate(t) {
		return false
	}
	depth := at - p.at
	for open := depth; open > 0 && at < len(p.tokens); at++ { // open: brackets before the number that are not closed yet
		switch t := p.tokens[at]; {
		case t.kind == end:
			return true
		case t.is("("), t.is("{"):
			depth++
		case t.is(")"), t.is("}"):
			depth--
			open = min(open, depth)
		case depth == open && (isComparison(t) || t.is("|")):
			return false
		}
	}
	return true
}

// parseFilter parses a comparison of numbers. left is the first one, or nil. Instead of a filter it
// returns only a number, in all, if nothing is compared: at the end of a pipeline in brackets.
func (p *parser) parseFilter(all, left *item) (storequery.Stage, error) {
	begin := p.peek()
	if left != nil {
		begin = left.tok
	}
	l, err := p.parseScalar(precAdd, left)
	if err != nil {
		return nil, err
	}
	op := p.peek()
	if !isComparison(op) || op.is("=~") || op.is("!~") {
		if p.depth == 0 || !op.is(")") {
			return nil, p.fail(op, "compare the number with a value, such as count() > 2")
		}
		all.scalar, all.tok = l, begin
		if one, ok := l.(storequery.Aggregate); ok && one.Over == nil {
			one.Over, all.set = all.set, nil
			all.scalar = one
		} else if all.set != nil {
			return nil, p.fail(begin, "write the arithmetic after the brackets: ({ ... } | count()) + 1")
		}
		return nil, nil
	}
	p.takeToken()
	r, err := p.parseScalar(precAdd, nil)
	if err != nil {
		return nil, err
	}
	over, found := overOf(nil, l)
	over, found2 := overOf(over, r)
	if !found && !found2 {
		return nil, p.fail(begin, "compare an aggregate, such as count() > 2")
	}
	if all.set == nil && over != nil {
		all.set = over
	}
	return storequery.Filter{Op: opOf(op), Left: l, Right: r}, nil
}

// overOf returns the union of before, which may be nil, and the sets over which a number is
// calculated. found is true if the number has an aggregate.
func overOf(before storequery.SpanSet, o tracestore.Operand) (over storequery.SpanSet, found bool) {
	switch o := o.(type) {
	case tracestore.Arithmetic:
		left, found1 := overOf(before, o.Left)
		right, found2 := overOf(left, o.Right)
		return right, found1 || found2
	case storequery.Aggregate:
		switch {
		case o.Over == nil:
			return before, true
		case before == nil:
			return o.Over, true
		}
		return storequery.Or{Left: before, Right: o.Over}, true
	}
	return before, false
}

// parseScalar parses arithmetic with numbers and aggregates. left is its first operand, or nil.
func (p *parser) parseScalar(least int, left *item) (o tracestore.Operand, err error) {
	if left != nil {
		o = left.scalar
	} else if o, err = p.parseScalarOperand(); err != nil {
		return nil, err
	}
	for {
		op := p.peek()
		prec := precedence(op)
		if prec < max(least, precAdd) {
			return o, nil
		}
		p.takeToken()
		next := prec + 1
		if prec == precPower { // right-associative
			next = prec
		}
		if err := p.enter(op); err != nil {
			return nil, err
		}
		right, err := p.parseScalar(next, nil)
		p.leave()
		if err != nil {
			return nil, err
		}
		if o, err = p.scalarArithmetic(op, o, right); err != nil {
			return nil, err
		}
	}
}

// scalarArithmetic calculates constants.
func (p *parser) scalarArithmetic(op token, left, right tracestore.Operand) (tracestore.Operand, error) {
	all := tracestore.Arithmetic{Op: op.text[0], Left: left, Right: right}
	_, ok1 := left.(tracestore.Constant)
	_, ok2 := right.(tracestore.Constant)
	if !ok1 || !ok2 {
		return all, p.countCondition(op)
	}
	v, ok := tracestore.Compute(all, nil)
	if !ok || !isFinite(v) {
		return nil, p.fail(op, "the result is not a number of 64 bits")
	}
	return tracestore.Constant{Value: v}, nil
}

func (p *parser) parseScalarOperand() (o tracestore.Operand, err error) {
	t := p.peek()
	switch {
	case t.is("-"):
		p.takeToken()
		if err := p.enter(t); err != nil {
			return nil, err
		}
		defer p.leave()
		if o, err = p.parseScalarOperand(); err != nil {
			return nil, err
		}
		return p.scalarArithmetic(t, zero, o)
	case t.kind == number:
		v, _, err := p.number(p.takeToken())
		return tracestore.Constant{Value: v}, err
	case isAggregate(t):
		return p.parseAggregate()
	case t.is("(") && p.startsScalar():
		p.takeToken()
		if err := p.enter(t); err != nil {
			return nil, err
		}
		defer p.leave()
		if o, err = p.parseScalar(precAdd, nil); err != nil {
			return nil, err
		}
		if next := p.takeToken(); !next.is(")") {
			return nil, p.fail(next, "expected ) after the number, found %s", describe(next))
		}
		return o, nil
	case t.is("("):
		all, err := p.parseBrackets(p.takeToken())
		if err == nil && all.scalar == nil {
			err = p.fail(t, "expected a number, such as ({ ... } | count())")
		}
		return all.scalar, err
	}
	return nil, p.fail(t, "expected a number or an aggregate such as count(), found %s", describe(t))
}

func (p *parser) parseAggregate() (tracestore.Operand, error) {
	t := p.peek()
	a := storequery.Aggregate{Func: storequery.AggregateFunc(t.text)}
	if a.Func == storequery.Count {
		return a, p.parseEmptyBrackets()
	}
	of, typ, err := p.parseArgument()
	if err == nil && typ != anyType && typ != numberType {
		err = p.fail(t, "%s(...) needs a number or a duration", t.text)
	}
	a.Of = of
	return a, err
}
