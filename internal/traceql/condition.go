package traceql

import (
	"slices"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

func (p *parser) parseOr() (tracestore.Expr, error) {
	e, err := p.parseAnd()
	parts := tracestore.Or{e}
	for err == nil && p.skip("||") {
		e, err = p.parseAnd()
		parts = append(parts, e)
	}
	if err != nil {
		return nil, err
	}
	return joinOr(parts), nil
}

func (p *parser) parseAnd() (tracestore.Expr, error) {
	e, err := p.parseTerm()
	parts := tracestore.And{e}
	for err == nil && p.skip("&&") {
		e, err = p.parseTerm()
		parts = append(parts, e)
	}
	if err != nil {
		return nil, err
	}
	return joinAnd(parts), nil
}

// joinAnd returns a conjunction. It flattens nested conjunctions, and returns a single part
// unchanged.
func joinAnd(parts tracestore.And) tracestore.Expr { return flatten(parts) }

// joinOr is like joinAnd, for disjunctions.
func joinOr(parts tracestore.Or) tracestore.Expr { return flatten(parts) }

func flatten[L interface {
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

func (p *parser) parseTerm() (e tracestore.Expr, err error) {
	negated, afterNot := false, p.peek().is("!")
	for p.skip("!") {
		negated = !negated
	}
	t := p.takeToken()
	switch {
	case t.is("("):
		e, err = p.parseGroup(t)
	case t.isWord("exists") && p.peek().is("("):
		e, err = p.parseExists(t)
	case t.kind == word || t.kind == number || t.kind == quoted:
		e, err = p.parseComparison(t, afterNot)
	default:
		err = p.errNoCondition(t)
	}
	if err != nil {
		return nil, err
	}
	if negated {
		e = not(e)
	}
	return e, nil
}

func (p *parser) parseGroup(open token) (tracestore.Expr, error) {
	if err := p.enter(open); err != nil {
		return nil, err
	}
	defer p.leave()
	e, err := p.parseOr()
	if err != nil {
		return nil, err
	}
	if t := p.takeToken(); !t.is(")") {
		if t.kind == end {
			return nil, p.fail(open, "missing closing )")
		}
		return nil, p.errAfterCondition(t)
	}
	return e, nil
}

// parseExists parses the field in parentheses after exists.
func (p *parser) parseExists(t token) (tracestore.Expr, error) {
	if err := p.countCondition(t); err != nil {
		return nil, err
	}
	p.takeToken()
	f, err := p.value(p.takeToken())
	if err != nil {
		return nil, err
	}
	if t := p.takeToken(); !t.is(")") {
		return nil, p.fail(t, "expected ) after the field, found %s", describe(t))
	}
	return tracestore.Cond{Field: f.Field, Op: tracestore.Exists}, nil
}

// parseComparison parses a comparison whose left side was taken, or a bare field. After ! only a
// bare field is permitted.
func (p *parser) parseComparison(left token, negated bool) (tracestore.Expr, error) {
	if err := p.countCondition(left); err != nil {
		return nil, err
	}
	op := p.peek()
	if !isComparison(op) {
		return p.bareField(left)
	}
	if negated {
		return nil, p.fail(op, "! requires parentheses around a comparison: !(a %s b)", op.text)
	}
	p.takeToken()
	right := p.takeToken()
	switch right.kind {
	case word, number, quoted:
	default:
		return nil, p.errNoValue(op, right)
	}
	if next := p.peek(); isComparison(next) {
		return nil, p.fail(next, "join comparisons with && or ||: a < b && b < c")
	}
	return p.compare(left, op, right)
}

func isComparison(t token) bool {
	return t.kind == operator && slices.Contains([]string{"=", "!=", "<", "<=", ">", ">=", "=~", "!~"}, t.text)
}

// bareField interprets a token without a comparison: true, false, or a field that must be true.
func (p *parser) bareField(t token) (tracestore.Expr, error) {
	switch {
	case t.isWord("true"):
		return tracestore.And{}, nil
	case t.isWord("false"):
		return tracestore.Or{}, nil
	case t.kind == quoted:
		return p.containing(t)
	case isConstant(t):
		return nil, p.fail(t, "expected a comparison with a field, such as duration > 1s")
	}
	if next := p.peek(); next.is("(") && t.plain == len(t.text) {
		return nil, p.fail(t, "%s(...) is not supported; the only function is exists(field)", shorten(t.text))
	}
	f, err := p.field(t)
	if err != nil {
		return nil, err
	}
	switch f.class() {
	case tracestore.AttributeField:
		return tracestore.Cond{Field: f.Field, Op: tracestore.Eq, Value: tracestore.Text("true")}, nil
	case tracestore.BooleanField:
		return f.shorthand.Expr(), nil
	}
	if next := p.peek(); next.is("==") {
		return nil, p.errAfterCondition(next)
	}
	return nil, p.fail(t, "%s is not a boolean; compare it with a value, or use exists(%s)", t.text, t.text)
}

// errNoCondition returns the error for t, which is not the start of a condition.
func (p *parser) errNoCondition(t token) error {
	switch {
	case t.is("{"):
		return p.fail(t, "{ } cannot be nested; group conditions with ( )")
	case t.kind == end || t.is("}") || t.is(")") || t.is("&&") || t.is("||"):
		return p.fail(t, "expected a condition, such as duration > 1s, found %s", describe(t))
	case isArithmetic(t):
		return p.fail(t, arithmetic)
	}
	return p.fail(t, "expected a field, found %s", describe(t))
}

// errNoValue returns the error for t, which follows a comparison operator and is not a value.
func (p *parser) errNoValue(op, t token) error {
	switch {
	case op.text == "=" && (t.is("=") || t.is("==")):
		return p.fail(t, "use a single = for equality")
	case isArithmetic(t):
		return p.fail(t, arithmetic)
	case t.is("("):
		return p.fail(t, "expected a value after %s; parentheses are allowed only around whole conditions", op.text)
	}
	return p.fail(t, "expected a value after %s, found %s", op.text, describe(t))
}

const arithmetic = "arithmetic is not supported; compare a field with a number or text"

func isArithmetic(t token) bool {
	return t.kind == operator && slices.Contains([]string{"+", "-", "*", "/", "%", "^"}, t.text) || t.kind == number && t.text[0] == '-'
}

// errAfterCondition returns the error for t, which follows a condition.
func (p *parser) errAfterCondition(t token) error {
	switch {
	case isArithmetic(t):
		return p.fail(t, arithmetic)
	case t.is("=="):
		return p.fail(t, "use a single = for equality")
	case t.is("&"), t.isWord("and"), t.isWord("AND"):
		return p.fail(t, "use && for AND")
	case t.is("|"), t.isWord("or"), t.isWord("OR"):
		return p.fail(t, "use || for OR")
	case t.is(","):
		return p.fail(t, "join conditions with && or ||")
	case isComparison(t):
		return p.fail(t, "compare one field with one value, without parentheses; negate with !(a = b)")
	case t.is("~"):
		return p.fail(t, "use =~ for regular expressions")
	case t.kind == operator && (t.text[0] == '>' || t.text[0] == '<' || t.text[0] == '!' || t.text[0] == '&'):
		return p.fail(t, "%s is not allowed within { }; for structure, write { ... } >> { ... }", t.text)
	}
	return p.fail(t, "expected &&, || or a closing bracket, found %s", describe(t))
}
