package queryfilter

import (
	"fmt"
	"slices"

	"github.com/tracing-backend/tracing/internal/wire/expression_v1"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// some returns the condition that one event or link of a span meets a condition. Package tracestore
// has no conditions that several properties of one event meet together. So each alternative may
// have only one comparison with the event or link; all others are about the span.
func (p *parser) some(c *expression_v1.Call, depth int) (tracestore.Expr, error) {
	if err := wantArgs(c, 2); err != nil {
		return nil, err
	}
	nested, inner := c.GetArgs()[0].GetNested(), c.GetArgs()[1].GetCall()
	level := nested.GetLevel()
	switch {
	case nested == nil || level != levelEvent && level != levelLink:
		return nil, fmt.Errorf("operator %q takes the collection event or link as its first argument", opSome)
	case inner == nil:
		return nil, fmt.Errorf("operator %q takes a call as its second argument, got %s", opSome, termName(c.GetArgs()[1]))
	}
	return p.element(level, inner, depth+1)
}

// element returns the condition that an element of a level meets a call.
func (p *parser) element(level string, c *expression_v1.Call, depth int) (tracestore.Expr, error) {
	if depth > MaxDepth {
		return p.call(c, depth) // the error
	}
	if !uses(level, c, depth) {
		outer, err := p.call(c, depth)
		return tracestore.And{hasElement(level), outer}, err
	}
	switch op := c.GetOp(); op {
	case opAnd, opOr:
		return p.elementParts(level, c, depth)
	case opNot, opSome, opNotIn:
		return nil, fmt.Errorf("operator %q about the %s within %q is not supported", op, level, opSome)
	case opNe:
		return p.elementDiffers(level, c)
	}
	if args := c.GetArgs(); len(args) == 2 && names(level, args[0], depth) && names(level, args[1], depth) {
		return nil, errTogether(level)
	}
	return p.call(c, depth)
}

func errTogether(level string) error {
	return fmt.Errorf("several comparisons with one %s within %q are not supported", level, opSome)
}

// elementParts is element for the operators and, or.
func (p *parser) elementParts(level string, c *expression_v1.Call, depth int) (tracestore.Expr, error) {
	if len(c.GetArgs()) < 2 || slices.ContainsFunc(c.GetArgs(), func(e *expression_v1.Expression) bool { return e.GetCall() == nil }) {
		return p.call(c, depth) // the error
	}
	var parts []tracestore.Expr
	about := 0 // parts about the element
	for _, arg := range c.GetArgs() {
		if uses(level, arg.GetCall(), depth+1) {
			about++
		}
		part, err := p.element(level, arg.GetCall(), depth+1)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	switch {
	case c.GetOp() == opOr:
		return tracestore.Or(parts), nil
	case about > 1:
		return nil, errTogether(level)
	}
	return tracestore.And(parts), nil
}

// elementDiffers is element for the operator ne: a value of an element differs.
func (p *parser) elementDiffers(level string, c *expression_v1.Call) (tracestore.Expr, error) {
	equal, err := p.comparison(&expression_v1.Call{Op: opEq, Args: c.GetArgs()})
	if err != nil {
		return nil, err
	}
	cond, ok := equal.(tracestore.Cond)
	if !ok {
		return nil, fmt.Errorf("operator %q with this type about the %s within %q is not supported", opNe, level, opSome)
	}
	cond.Op = tracestore.Ne
	return cond, nil
}

// hasElement returns the condition that a span has events or links.
func hasElement(level string) tracestore.Expr {
	place := tracestore.EventName
	if level == levelLink {
		place = tracestore.LinkSpanID
	}
	return tracestore.Cond{Field: tracestore.Field{Place: place}, Op: tracestore.Exists}
}

// uses reports whether an argument of a call names a level, apart from calls that are nested too
// deeply.
func uses(level string, c *expression_v1.Call, depth int) bool {
	return slices.ContainsFunc(c.GetArgs(), func(e *expression_v1.Expression) bool { return names(level, e, depth) })
}

// names is uses for one argument.
func names(level string, e *expression_v1.Expression, depth int) bool {
	if inner := e.GetCall(); inner != nil {
		return depth < MaxDepth && uses(level, inner, depth+1)
	}
	return level == e.GetAttr().GetLevel() || level == e.GetField().GetLevel() || level == e.GetNested().GetLevel()
}
