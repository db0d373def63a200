package traceql

import (
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// term is a part of an expression in braces: a condition, or a value. A value is either a single
// token, or computed.
type term struct {
	tok     token              // the only token, or the position of all tokens
	single  bool               // tok is a word, a number, a text or a constant
	expr    tracestore.Expr    // of a condition
	operand tracestore.Operand // of a computed value
	typ     valueType          // of operand
}

func (t *term) isCondition() bool { return !t.single && t.operand == nil }

// valueType is the type that a value has for certain.
type valueType uint8

// The types.
const (
	anyType valueType = iota // of attributes
	numberType
	textType
	boolType
	kindType
	statusType
)

// The precedence of operators in braces.
const (
	precLogic = 1 + iota // && and || are equal, as in TraceQL
	precCompare
	precAdd
	precNot
	precMultiply
	precPower
)

func precedence(t token) int {
	if t.kind != operator {
		return 0
	}
	switch t.text {
	case "&&", "||":
		return precLogic
	case "+", "-":
		return precAdd
	case "*", "/", "%":
		return precMultiply
	case "^":
		return precPower
	}
	if isComparison(t) {
		return precCompare
	}
	return 0
}

func isComparison(t token) bool {
	return t.kind == operator && slices.Contains([]string{"=", "!=", "<", "<=", ">", ">=", "=~", "!~"}, t.text)
}

// parseCondition parses a whole expression in braces.
func (p *parser) parseCondition() (tracestore.Expr, error) {
	t, err := p.parseExpr(precLogic)
	if err != nil {
		return nil, err
	}
	return p.condition(t)
}

// parseExpr parses an expression whose operators have at least a precedence.
func (p *parser) parseExpr(least int) (term, error) {
	left, err := p.parseUnary()
	compared := false
	for err == nil {
		op := p.peek()
		prec := precedence(op)
		if prec == 0 || prec < least {
			break
		}
		if prec == precCompare {
			if compared {
				return left, p.fail(op, "join comparisons with && or ||: a < b && b < c")
			}
			compared = true
		}
		p.takeToken()
		next := prec + 1
		if prec == precPower { // right-associative
			if next = prec; p.depth >= MaxDepth {
				return left, p.enter(op)
			}
			p.depth++
		}
		var right term
		right, err = p.parseExpr(next)
		if prec == precPower {
			p.leave()
		}
		if err == nil {
			left, err = p.binary(left, op, right)
		}
	}
	return left, err
}

// zero is the left side of a difference that stands for a negative number.
var zero = tracestore.Constant{Value: otlpdata.IntValue(0)}

func (p *parser) binary(left term, op token, right term) (t term, err error) {
	t.tok = p.between(left.tok, right.tok)
	switch precedence(op) {
	case precLogic:
		l, err := p.condition(left)
		if err != nil {
			return t, err
		}
		r, err := p.condition(right)
		if err != nil {
			return t, err
		}
		if op.text == "&&" {
			t.expr = joinAnd(tracestore.And{l, r})
		} else {
			t.expr = joinOr(tracestore.Or{l, r})
		}
		return t, nil
	case precCompare:
		t.expr, err = p.compareTerms(left, op, right)
		return t, err
	}
	return p.calculate(left, op, right)
}

// between returns a token at the position of everything from one token to another.
func (p *parser) between(first, last token) token {
	begin, end := min(first.begin, last.begin), max(first.end, last.end)
	return token{kind: word, text: p.text[begin:end], plain: end - begin, begin: begin, end: end}
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

// parseUnary parses an operand with the ! and - before it.
func (p *parser) parseUnary() (t term, err error) {
	first := p.peek()
	switch {
	case first.is("!"):
		return p.parseNot()
	case first.is("-"):
		p.takeToken()
		if err := p.enter(first); err != nil {
			return t, err
		}
		defer p.leave()
		if t, err = p.parseExpr(precMultiply); err != nil {
			return t, err
		}
		_, typ, err := p.computed(t)
		if err != nil {
			return t, err
		}
		t, err = p.calculate(term{tok: token{kind: number, value: &zero.Value, begin: first.begin, end: first.end}, single: true}, first, t)
		t.typ = typ // not that of 0
		return t, err
	}
	first = p.takeToken()
	switch {
	case first.is("("):
		return p.parseGroup(first)
	case first.isWord("exists") && p.peek().is("("):
		t.tok = first
		t.expr, err = p.parseExists(first)
		return t, err
	case first.kind == word || first.kind == number || first.kind == quoted:
		if first.kind == word && !isConstant(first) && !isWordValue(first) {
			if err := p.countCondition(first); err != nil {
				return t, err
			}
		}
		if next := p.peek(); first.kind == word && next.is("(") && first.plain == len(first.text) {
			return t, p.fail(first, "%s(...) is not allowed in { }; the only function there is exists(field)", shorten(first.text))
		}
		return term{tok: first, single: true}, nil
	}
	return t, p.errNoCondition(first)
}

func (p *parser) parseNot() (t term, err error) {
	first := p.peek()
	negated := false
	for p.skip("!") {
		negated = !negated
	}
	part, err := p.parseExpr(precMultiply)
	if err != nil {
		return t, err
	}
	t.tok = p.between(first, part.tok)
	if next := p.peek(); isComparison(next) && part.single && !isConstant(part.tok) {
		if f, err := p.field(part.tok); err != nil || f.class() != tracestore.BooleanField && f.class() != tracestore.AttributeField {
			return t, p.fail(next, "! requires parentheses around a comparison: !(a %s b)", next.text)
		}
	}
	e, err := p.condition(part)
	if err != nil {
		return t, err
	}
	if t.expr = e; negated {
		t.expr = not(e)
	}
	return t, nil
}

func (p *parser) parseGroup(open token) (t term, err error) {
	if err := p.enter(open); err != nil {
		return t, err
	}
	defer p.leave()
	if t, err = p.parseExpr(precLogic); err != nil {
		return t, err
	}
	if next := p.takeToken(); !next.is(")") {
		if next.kind == end {
			return t, p.fail(open, "missing closing )")
		}
		return t, p.errAfterCondition(next)
	}
	return t, nil
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

// condition interprets a term as a condition: true, false, or a field that must be true.
func (p *parser) condition(t term) (tracestore.Expr, error) {
	tok := t.tok
	switch {
	case t.isCondition():
		return t.expr, nil
	case !t.single && t.typ == anyType:
		return tracestore.Or{}, nil // never true: arithmetic with attributes results in a number
	case !t.single:
		return nil, p.fail(tok, "not a condition but a number; compare it with a value")
	case tok.isWord("true"):
		return tracestore.And{}, nil
	case tok.isWord("false"):
		return tracestore.Or{}, nil
	case tok.kind == quoted:
		if err := p.countCondition(tok); err != nil {
			return nil, err
		}
		return p.containing(tok)
	case isConstant(tok):
		return nil, p.fail(tok, "expected a comparison with a field, such as duration > 1s")
	}
	if isWordValue(tok) {
		if err := p.countCondition(tok); err != nil {
			return nil, err
		}
	}
	f, err := p.field(tok)
	if err != nil {
		return nil, err
	}
	switch f.class() {
	case tracestore.AttributeField:
		return tracestore.Cond{Field: f.Field, Op: tracestore.Eq, Value: tracestore.Bool(true)}, nil
	case tracestore.BooleanField:
		return f.shorthand.Expr(), nil
	}
	if next := p.peek(); next.is("==") {
		return nil, p.errAfterCondition(next)
	}
	return nil, p.fail(tok, "%s is not a boolean; compare it with a value, or use exists(%s)", tok.text, tok.text)
}

// computed returns the operand for a term, and its type.
func (p *parser) computed(t term) (tracestore.Operand, valueType, error) {
	switch {
	case t.isCondition():
		return tracestore.Truth{Expr: t.expr}, boolType, nil
	case !t.single:
		return t.operand, t.typ, nil
	case isConstant(t.tok):
		v, typ, err := p.constant(t.tok)
		return tracestore.Constant{Value: v}, typ, err
	}
	f, err := p.field(t.tok)
	switch {
	case err != nil:
		return nil, 0, err
	case f.shorthand != nil:
		return tracestore.Truth{Expr: f.shorthand.Expr()}, boolType, nil
	case f.Place.Info().SearchOnly:
		return nil, 0, p.fail(t.tok, "%s can only be compared with a text", t.tok.text)
	}
	switch f.class() {
	case tracestore.TextField:
		return f.Field, textType, nil
	case tracestore.DurationField, tracestore.NumberField:
		return f.Field, numberType, nil
	case tracestore.WordField:
		if f.Place == tracestore.Kind {
			return f.Field, kindType, nil
		}
		return f.Field, statusType, nil
	}
	return f.Field, anyType, nil
}

// calculate returns the term for arithmetic. It calculates constants.
func (p *parser) calculate(left term, op token, right term) (t term, err error) {
	t = term{tok: p.between(left.tok, right.tok), typ: numberType}
	var operands [2]tracestore.Operand
	constants := true
	var types [2]valueType
	for i, side := range []term{left, right} {
		o, typ, err := p.computed(side)
		if err != nil {
			return t, err
		}
		if typ != numberType && typ != anyType {
			return t, p.fail(side.tok, "not a number; %s calculates only with numbers and durations", op.text)
		}
		operands[i], types[i] = o, typ
		_, isConstant := o.(tracestore.Constant)
		constants = constants && isConstant
	}
	if types[0] == anyType && types[1] == anyType {
		t.typ = anyType
	}
	all := tracestore.Arithmetic{Op: op.text[0], Left: operands[0], Right: operands[1]}
	if !constants {
		t.operand = all
		return t, p.countCondition(op)
	}
	v, ok := tracestore.Compute(all, nil)
	if !ok || !isFinite(v) {
		return t, p.fail(t.tok, "the result is not a number of 64 bits")
	}
	t.tok.kind, t.tok.value, t.single = number, &v, true
	return t, nil
}

// errNoCondition returns the error for t, which is not the start of a condition.
func (p *parser) errNoCondition(t token) error {
	before := token{}
	if i := slices.IndexFunc(p.tokens, func(o token) bool { return o.begin == t.begin }); i > 0 {
		before = p.tokens[i-1]
	}
	switch {
	case t.is("{"):
		return p.fail(t, "{ } cannot be nested; group conditions with ( )")
	case before.is("=") && (t.is("=") || t.is("==")):
		return p.fail(t, "use a single = for equality")
	case isComparison(before) || precedence(before) > precCompare:
		return p.fail(t, "expected a value after %s, found %s", before.text, describe(t))
	case t.kind == end || t.is("}") || t.is(")") || t.is("&&") || t.is("||"):
		return p.fail(t, "expected a condition, such as duration > 1s, found %s", describe(t))
	}
	return p.fail(t, "expected a field, found %s", describe(t))
}

// errAfterCondition returns the error for t, which follows a condition.
func (p *parser) errAfterCondition(t token) error {
	switch {
	case t.is("=="):
		return p.fail(t, "use a single = for equality")
	case t.is("&"), t.isWord("and"), t.isWord("AND"):
		return p.fail(t, "use && for AND")
	case t.is("|"), t.isWord("or"), t.isWord("OR"):
		return p.fail(t, "use || for OR")
	case t.is(","):
		return p.fail(t, "join conditions with && or ||")
	case t.is("~"):
		return p.fail(t, "use =~ for regular expressions")
	case t.kind == operator && (t.text[0] == '>' || t.text[0] == '<' || t.text[0] == '!' || t.text[0] == '&'):
		return p.fail(t, "%s is not allowed within { }; for structure, write { ... } >> { ... }", t.text)
	}
	return p.fail(t, "expected &&, || or a closing bracket, found %s", describe(t))
}

// isWordField reports whether a token is a field with few values.
func isWordField(t token) bool {
	f, ok := intrinsic(t.text)
	return t.kind == word && ok && f.class() == tracestore.WordField
}

// isWordValue reports whether a word is a value of a field with few values, such as a kind.
func isWordValue(t token) bool {
	return t.kind == word && slices.ContainsFunc(tracestore.Places(), func(p tracestore.PlaceInfo) bool {
		return slices.Contains(p.Words, t.text)
	})
}

func orList(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
