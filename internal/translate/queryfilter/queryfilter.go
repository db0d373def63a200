// Package queryfilter translates filters of searches into conditions of package tracestore. Filters
// are calls of package tracing.expression.v1, in api_v3 and in remote storage v2.
//
// A comparison is false if its reference has no value. A reference with several values meets a
// comparison with one of them, but meets `ne` and `not_in` only if no value is equal.
package queryfilter

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/internal/wire/expression_v1"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Limits of a filter. Exceeding a limit is an error that names it. Regular expressions have the
// limits of package traceql.
const (
	MaxDepth      = 20                    // nested calls
	MaxConditions = traceql.MaxConditions // comparisons; each element of a list and each level of an attribute counts
	MaxText       = traceql.MaxText       // bytes of keys and constants
)

// ErrNotAlone is the error of a search with a filter and with conditions that a filter replaces.
var ErrNotAlone = errors.New("filter replaces all other conditions of a search; add them to the filter")

// Levels returns the levels of references, apart from "".
func Levels() []string { return []string{levelSpan, levelResource, levelScope, levelEvent, levelLink} }

// Operators returns the operators of calls.
func Operators() []string {
	return []string{
		opAnd, opOr, opNot, opEq, opNe, opGt, opLt, opGte, opLte, opRegex, opExists, opIn, opNotIn, opSome,
	}
}

const (
	opAnd    = "and"
	opOr     = "or"
	opNot    = "not"
	opEq     = "eq"
	opNe     = "ne"
	opGt     = "gt"
	opLt     = "lt"
	opGte    = "gte"
	opLte    = "lte"
	opRegex  = "regex"
	opExists = "exists"
	opIn     = "in"
	opNotIn  = "not_in"
	opSome   = "some"
)

// ParseJSON is [Parse] for the JSON form of a filter.
func ParseJSON(text string) (tracestore.Expr, error) {
	call := &expression_v1.Call{}
	if err := protojson.Unmarshal([]byte(text), call); err != nil {
		return nil, errors.New(jsonProblem(err))
	}
	return Parse(call)
}

// jsonProblem returns the text of an error of protojson, which begins with `proto:` and a space
// that varies between builds.
func jsonProblem(err error) string {
	return strings.TrimLeft(strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto:"), " ")
}

// Parse returns the condition that a filter describes. It may use fields of the trace, so searches
// need storequery.Find. The error is for the client.
func Parse(filter *expression_v1.Call) (tracestore.Expr, error) {
	p := &parser{}
	return p.call(filter, 1)
}

// parser counts what the limits restrict.
type parser struct {
	conditions, text, steps int
}

// call returns the condition of a call at a depth.
func (p *parser) call(c *expression_v1.Call, depth int) (tracestore.Expr, error) {
	args := c.GetArgs()
	if depth > MaxDepth {
		return nil, fmt.Errorf("filter nests calls more than %d deep", MaxDepth)
	}
	switch op := c.GetOp(); op {
	case opAnd, opOr:
		if len(args) < 2 {
			return nil, fmt.Errorf("operator %q takes at least two arguments, got %d", op, len(args))
		}
		parts, err := p.calls(op, args, depth)
		if err != nil {
			return nil, err
		}
		if op == opAnd {
			return tracestore.And(parts), nil
		}
		return tracestore.Or(parts), nil
	case opNot:
		if err := wantArgs(c, 1); err != nil {
			return nil, err
		}
		parts, err := p.calls(op, args, depth)
		if err != nil {
			return nil, err
		}
		return tracestore.Not{Expr: parts[0]}, nil
	case opSome:
		return p.some(c, depth)
	case opExists:
		if err := wantArgs(c, 1); err != nil {
			return nil, err
		}
		r, err := p.subject(op, args[0])
		if err != nil {
			return nil, err
		}
		return r.exists(), nil
	case opIn, opNotIn, opRegex, opEq, opNe, opGt, opLt, opGte, opLte:
		return p.comparison(c)
	default:
		return nil, fmt.Errorf("unknown operator %q; use one of %s", op, strings.Join(Operators(), ", "))
	}
}

// calls returns the conditions of arguments that are calls.
func (p *parser) calls(op string, args []*expression_v1.Expression, depth int) (parts []tracestore.Expr, err error) {
	for _, arg := range args {
		inner := arg.GetCall()
		if inner == nil {
			return nil, fmt.Errorf("operator %q takes calls as arguments, got %s", op, termName(arg))
		}
		part, err := p.call(inner, depth+1)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	return parts, nil
}

func wantArgs(c *expression_v1.Call, n int) error {
	if len(c.GetArgs()) != n {
		return fmt.Errorf("operator %q takes %d argument(s), got %d", c.GetOp(), n, len(c.GetArgs()))
	}
	return nil
}

// addConditions counts comparisons.
func (p *parser) addConditions(n int) error {
	if p.conditions += n; p.conditions > MaxConditions {
		return fmt.Errorf("filter has more than %d comparisons", MaxConditions)
	}
	return nil
}

// addText counts the bytes of a key or constant.
func (p *parser) addText(s string) error {
	if p.text += len(s); p.text > MaxText {
		return fmt.Errorf("filter has more than %d bytes of keys and constants", MaxText)
	}
	return nil
}

// termName names the kind of an argument in messages.
func termName(e *expression_v1.Expression) string {
	switch e.GetTerm().(type) {
	case *expression_v1.Expression_Attr:
		return "an attribute"
	case *expression_v1.Expression_Field:
		return "a field"
	case *expression_v1.Expression_Nested:
		return "a collection"
	case *expression_v1.Expression_Scalar:
		return "a constant"
	case *expression_v1.Expression_List:
		return "a list"
	case *expression_v1.Expression_Call:
		return "a call"
	}
	return "nothing; set one of attr, field, nested, scalar, list and call"
}

// isOrdered reports whether an operator depends on the order of values.
func isOrdered(op string) bool { return slices.Contains([]string{opGt, opLt, opGte, opLte}, op) }
