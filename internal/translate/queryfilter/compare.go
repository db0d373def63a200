package queryfilter

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/internal/wire/expression_v1"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// The types of constants. "" means any type.
const (
	typeString = "string"
	typeInt    = "int"
	typeDouble = "double"
	typeBool   = "bool"
)

var ops = map[string]tracestore.Op{
	opEq: tracestore.Eq, opNe: tracestore.Ne, opGt: tracestore.Gt, opLt: tracestore.Lt, opGte: tracestore.Ge, opLte: tracestore.Le,
}

// mirrored returns the operator for exchanged operands.
var mirrored = map[string]string{opEq: opEq, opNe: opNe, opGt: opLt, opLt: opGt, opGte: opLte, opLte: opGte}

// comparison returns the condition of a call that compares two arguments.
func (p *parser) comparison(c *expression_v1.Call) (tracestore.Expr, error) {
	op := c.GetOp()
	if err := wantArgs(c, 2); err != nil {
		return nil, err
	}
	left, right := c.GetArgs()[0], c.GetArgs()[1]
	if left.GetScalar() != nil && mirrored[op] != "" {
		left, right, op = right, left, mirrored[op]
	}
	r, err := p.subject(c.GetOp(), left)
	if err != nil {
		return nil, err
	}
	switch op {
	case opIn, opNotIn:
		return p.membership(op, r, right)
	case opRegex:
		return p.regex(r, right)
	}
	other, ok, err := p.reference(right)
	switch {
	case err != nil:
		return nil, err
	case ok:
		if err := p.addConditions(len(r.fields) * len(other.fields)); err != nil {
			return nil, err
		}
		return compareReferences(op, r, other)
	case right.GetScalar() == nil:
		return nil, fmt.Errorf("operator %q compares with a constant, an attribute or a field, got %s", op, termName(right))
	}
	return p.compareConstant(op, r, right.GetScalar().GetValue(), right.GetScalar().GetType())
}

// compareConstant returns the condition that compares a reference with a constant.
func (p *parser) compareConstant(op string, r reference, text, typ string) (tracestore.Expr, error) {
	if op == opNe {
		equal, err := p.compareConstant(opEq, r, text, typ)
		if err != nil {
			return nil, err
		}
		return r.none(equal), nil
	}
	f, err := p.constant(op, r, text, typ)
	if err != nil {
		return nil, err
	}
	return r.anyOf(f), nil
}

// constant returns a function that returns the condition on a field of a reference.
func (p *parser) constant(op string, r reference, text, typ string) (func(tracestore.Field) tracestore.Expr, error) {
	if err := p.addText(text); err != nil {
		return nil, err
	}
	value := tracestore.Text(text)
	switch r.typ {
	case tracestore.AttributeField:
		return attributeConstant(op, r, text, typ)
	case tracestore.DurationField:
		d, err := time.ParseDuration(text)
		if err != nil {
			return nil, fmt.Errorf("%s must be compared with a duration such as 1.5s, got %q", r.name, text)
		}
		if typ != "" {
			return nil, errType(r, typ)
		}
		value = tracestore.Number(float64(d))
	case tracestore.WordField:
		info := r.fields[0].Place.Info()
		switch {
		case isOrdered(op):
			return nil, fmt.Errorf("operator %q does not apply to %s, whose values have no order", op, r.name)
		case !slices.Contains(info.Words, text):
			return nil, fmt.Errorf("%s is not %q; its values are %s", r.name, text, strings.Join(info.Words, ", "))
		case text == info.Empty:
			value = tracestore.Text("")
		}
	case tracestore.TextField:
		if op == opEq {
			value = tracestore.Text(traceql.IDText(r.fields[0].Place, text))
		}
	}
	if typ != "" && typ != typeString {
		return nil, errType(r, typ)
	}
	return func(f tracestore.Field) tracestore.Expr { return tracestore.Cond{Field: f, Op: ops[op], Value: value} }, nil
}

func errType(r reference, typ string) error {
	return fmt.Errorf("%s cannot be compared with the type %q", r.name, typ)
}

// attributeConstant is constant for an attribute. Numbers are compared with integers and floats.
// Large integers are compared exactly, on whole traces.
func attributeConstant(op string, r reference, text, typ string) (func(tracestore.Field) tracestore.Expr, error) {
	wrong := fmt.Errorf("constant %q is not of its type %q", text, typ)
	value := tracestore.Text(text)
	switch typ {
	case "":
		if n, err := strconv.ParseFloat(text, 64); err == nil && isFinite(n) && isOrdered(op) {
			value = tracestore.Number(n)
		}
	case typeString:
		value = tracestore.String(text)
	case typeInt:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, wrong
		}
		if value = tracestore.Number(float64(n)); n >= maxExact || n <= -maxExact {
			return func(f tracestore.Field) tracestore.Expr {
				return tracestore.Compare{Op: ops[op], Left: f, Right: tracestore.Constant{Value: otlpdata.IntValue(n)}}
			}, nil
		}
	case typeDouble:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || !isFinite(n) {
			return nil, wrong
		}
		value = tracestore.Number(n)
	case typeBool:
		b, err := strconv.ParseBool(text)
		if err != nil {
			return nil, wrong
		}
		if isOrdered(op) {
			return nil, fmt.Errorf("operator %q does not apply to bool, whose values have no order", op)
		}
		value = tracestore.Bool(b)
	default:
		return nil, fmt.Errorf("unknown type %q of constant %q", typ, text)
	}
	return func(f tracestore.Field) tracestore.Expr { return tracestore.Cond{Field: f, Op: ops[op], Value: value} }, nil
}

// maxExact is the first integer that has the same float as another integer.
const maxExact = 1 << 53

func isFinite(n float64) bool { return !math.IsInf(n, 0) && !math.IsNaN(n) }

// membership returns the condition that a reference has one of the values of a list, or none.
func (p *parser) membership(op string, r reference, e *expression_v1.Expression) (tracestore.Expr, error) {
	list := e.GetList()
	switch {
	case list == nil:
		return nil, fmt.Errorf("operator %q takes a list as its second argument, got %s", op, termName(e))
	case len(list.GetValues()) == 0:
		return nil, fmt.Errorf("operator %q takes a list with at least one value", op)
	case list.GetType() == "" && r.typ == tracestore.AttributeField:
		return nil, fmt.Errorf("operator %q takes a list with a type beside an attribute", op)
	}
	if err := p.addConditions((len(list.GetValues()) - 1) * len(r.fields)); err != nil {
		return nil, err
	}
	var or tracestore.Or
	for _, text := range list.GetValues() {
		part, err := p.compareConstant(opEq, r, text, list.GetType())
		if err != nil {
			return nil, err
		}
		or = append(or, part)
	}
	if op == opNotIn {
		return r.none(or), nil
	}
	return or, nil
}

// regex returns the condition that a regular expression matches somewhere in a value.
func (p *parser) regex(r reference, e *expression_v1.Expression) (tracestore.Expr, error) {
	text := e.GetScalar().GetValue()
	if typ := e.GetScalar().GetType(); e.GetScalar() == nil || typ != "" && typ != typeString {
		return nil, fmt.Errorf("operator %q takes a text as its second argument", opRegex)
	}
	if r.typ == tracestore.DurationField {
		return nil, fmt.Errorf("operator %q applies to text, and %s is a duration", opRegex, r.name)
	}
	var err error
	if p.steps, err = traceql.CheckPattern(text, p.steps); err != nil {
		return nil, err
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("invalid regular expression (RE2): %w", err)
	}
	if r.typ == tracestore.WordField {
		return matchingWords(r.fields[0], re), nil
	}
	value := tracestore.Pattern(re)
	if r.typ == tracestore.AttributeField && e.GetScalar().GetType() == typeString {
		value.Kind = otlpdata.ValueString
	}
	return r.anyOf(func(f tracestore.Field) tracestore.Expr {
		return tracestore.Cond{Field: f, Op: tracestore.Like, Value: value}
	}), nil
}

// matchingWords returns the condition that a field has one of the words that an expression matches.
func matchingWords(f tracestore.Field, re *regexp.Regexp) tracestore.Expr {
	info, or := f.Place.Info(), tracestore.Or{}
	for _, word := range info.Words {
		if !re.MatchString(word) {
			continue
		}
		if word == info.Empty {
			word = ""
		}
		or = append(or, tracestore.Cond{Field: f, Op: tracestore.Eq, Value: tracestore.Text(word)})
	}
	return or
}

// compareReferences returns the condition that compares two references.
func compareReferences(op string, left, right reference) (tracestore.Expr, error) {
	attribute := left.typ == tracestore.AttributeField || right.typ == tracestore.AttributeField
	switch {
	case left.typ == tracestore.WordField || right.typ == tracestore.WordField:
		return nil, fmt.Errorf("operator %q compares %s and %s, but one of them has fixed values; compare that with a constant",
			op, left.name, right.name)
	case !attribute && left.typ != right.typ:
		return nil, fmt.Errorf("operator %q compares %s and %s, which have different types", op, left.name, right.name)
	}
	compare := func(op tracestore.Op) tracestore.Expr {
		return left.anyOf(func(l tracestore.Field) tracestore.Expr {
			return right.anyOf(func(r tracestore.Field) tracestore.Expr {
				return tracestore.Compare{Op: op, Left: l, Right: r}
			})
		})
	}
	if op == opNe {
		return tracestore.And{right.exists(), left.none(compare(tracestore.Eq))}, nil
	}
	return compare(ops[op]), nil
}
