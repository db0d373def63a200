package traceql

import (
	"slices"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

func (p *parser) any() (tracestore.Expr, error) {
	e, err := p.all()
	parts := tracestore.Or{e}
	for err == nil && p.skip("||") {
		e, err = p.all()
		parts = append(parts, e)
	}
	if err != nil {
		return nil, err
	}
	return either(parts), nil
}

func (p *parser) all() (tracestore.Expr, error) {
	e, err := p.one()
	parts := tracestore.And{e}
	for err == nil && p.skip("&&") {
		e, err = p.one()
		parts = append(parts, e)
	}
	if err != nil {
		return nil, err
	}
	return both(parts), nil
}

// both returns the shortest form of a conjunction: no And is part of an And, and none has one part.
func both(parts tracestore.And) tracestore.Expr { return shortest(parts) }

// either is both for disjunctions.
func either(parts tracestore.Or) tracestore.Expr { return shortest(parts) }

func shortest[L interface {
	~[]tracestore.Expr
	tracestore.Expr
}](parts L) tracestore.Expr {
	flat := L{}
	for _, e := range parts {
		if inner, ok := e.(L); ok {
			flat = append(flat, inner...)
		} else {
			flat = append(flat, e)
		}
	}
	if len(flat) == 1 {
		return flat[0]
	}
	return flat
}

func not(e tracestore.Expr) tracestore.Expr {
	if n, ok := e.(tracestore.Not); ok {
		return n.Expr
	}
	return tracestore.Not{Expr: e}
}

func (p *parser) one() (e tracestore.Expr, err error) {
	negated, asked := false, p.peek().is("!")
	for p.skip("!") {
		negated = !negated
	}
	t := p.take()
	switch {
	case t.is("("):
		e, err = p.group(t)
	case t.isWord("exists") && p.peek().is("("):
		e, err = p.exists(t)
	case t.kind == word || t.kind == number || t.kind == quoted:
		e, err = p.comparison(t, asked)
	default:
		err = p.noCondition(t)
	}
	if err != nil {
		return nil, err
	}
	if negated {
		e = not(e)
	}
	return e, nil
}

func (p *parser) group(open token) (tracestore.Expr, error) {
	if err := p.nest(open); err != nil {
		return nil, err
	}
	defer p.unnest()
	e, err := p.any()
	if err != nil {
		return nil, err
	}
	if t := p.take(); !t.is(")") {
		if t.kind == end {
			return nil, p.fail(open, "this ( is not closed")
		}
		return nil, p.behindCondition(t)
	}
	return e, nil
}

// exists reads a field in brackets.
func (p *parser) exists(t token) (tracestore.Expr, error) {
	if err := p.condition(t); err != nil {
		return nil, err
	}
	p.take()
	f, err := p.value(p.take())
	if err != nil {
		return nil, err
	}
	if t := p.take(); !t.is(")") {
		return nil, p.fail(t, "expected ) behind the field, not %s", describe(t))
	}
	return tracestore.Cond{Field: f.Field, Op: tracestore.Exists}, nil
}

// comparison reads a comparison, of which left is read, or a field that is true. Behind a ! only the latter may stand.
func (p *parser) comparison(left token, negated bool) (tracestore.Expr, error) {
	if err := p.condition(left); err != nil {
		return nil, err
	}
	op := p.peek()
	if !isComparison(op) {
		return p.lone(left)
	}
	if negated {
		return nil, p.fail(op, "what ! is about stands in brackets: !(a %s b)", op.text)
	}
	p.take()
	right := p.take()
	switch right.kind {
	case word, number, quoted:
	default:
		return nil, p.noConstant(op, right)
	}
	if next := p.peek(); isComparison(next) {
		return nil, p.fail(next, "comparisons are joined by && or ||: a < b && b < c")
	}
	return p.compare(left, op, right)
}

func isComparison(t token) bool {
	return t.kind == mark && slices.Contains([]string{"=", "!=", "<", "<=", ">", ">=", "=~", "!~"}, t.text)
}

// lone reads what stands without a comparison: true, false, or a field that must be true.
func (p *parser) lone(t token) (tracestore.Expr, error) {
	switch {
	case t.isWord("true"):
		return tracestore.And{}, nil
	case t.isWord("false"):
		return tracestore.Or{}, nil
	case isConstant(t):
		return nil, p.fail(t, "expected a comparison with a field, such as duration > 1s")
	}
	if next := p.peek(); next.is("(") && t.plain == len(t.text) {
		return nil, p.fail(t, "%s(...) is not supported; exists(field) is", clipped(t.text))
	}
	f, err := p.field(t)
	if err != nil {
		return nil, err
	}
	switch f.class {
	case anything:
		return equal(f, "true"), nil
	case boolean:
		return f.holds, nil
	}
	if next := p.peek(); next.is("==") {
		return nil, p.behindCondition(next)
	}
	return nil, p.fail(t, "%s is neither true nor false; compare it, or write exists(%s)", t.text, t.text)
}

func equal(f field, text string) tracestore.Cond {
	return tracestore.Cond{Field: f.Field, Op: tracestore.Eq, Value: tracestore.Text(text)}
}

// noCondition says what is wrong with t, which stands where a condition belongs.
func (p *parser) noCondition(t token) error {
	switch {
	case t.is("{"):
		return p.fail(t, "{ } do not stand within { }; group conditions by ( )")
	case t.kind == end || t.is("}") || t.is(")") || t.is("&&") || t.is("||"):
		return p.fail(t, "expected a condition, such as duration > 1s, not %s", describe(t))
	case isArithmetic(t):
		return p.fail(t, arithmetic)
	}
	return p.fail(t, "expected a field, not %s", describe(t))
}

// noConstant says what is wrong with t, which stands behind a comparison.
func (p *parser) noConstant(op, t token) error {
	switch {
	case op.text == "=" && (t.is("=") || t.is("==")):
		return p.fail(t, "equality is written with one =")
	case isArithmetic(t):
		return p.fail(t, arithmetic)
	case t.is("("):
		return p.fail(t, "expected a value behind %s; brackets stand around whole conditions", op.text)
	}
	return p.fail(t, "expected a value behind %s, not %s", op.text, describe(t))
}

const arithmetic = "arithmetic is not supported; compare a field with a number or text"

func isArithmetic(t token) bool {
	return t.kind == mark && slices.Contains([]string{"+", "-", "*", "/", "%", "^"}, t.text) || t.kind == number && t.text[0] == '-'
}

// behindCondition says what is wrong with t, which stands behind a condition.
func (p *parser) behindCondition(t token) error {
	switch {
	case isArithmetic(t):
		return p.fail(t, arithmetic)
	case t.is("=="):
		return p.fail(t, "equality is written with one =")
	case t.is("&"), t.isWord("and"), t.isWord("AND"):
		return p.fail(t, "and is written &&")
	case t.is("|"), t.isWord("or"), t.isWord("OR"):
		return p.fail(t, "or is written ||")
	case t.is(","):
		return p.fail(t, "conditions are joined by && or ||")
	case isComparison(t):
		return p.fail(t, "what is compared is one field with one value, without brackets; !(a = b) negates")
	case t.is("~"):
		return p.fail(t, "a regular expression is asked for with =~")
	case t.kind == mark && (t.text[0] == '>' || t.text[0] == '<' || t.text[0] == '!' || t.text[0] == '&'):
		return p.fail(t, "%s does not stand within { }; structure is { ... } >> { ... }", t.text)
	}
	return p.fail(t, "expected &&, || or a closing bracket, not %s", describe(t))
}
