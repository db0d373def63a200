package storewire

import (
	"regexp"
	"regexp/syntax"

	"github.com/tracing-backend/tracing/internal/wire/store_v1"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Limits of the conditions of one request. They are far above what a search can contain, and keep
// a client from making the server hold or evaluate arbitrarily large conditions.
const (
	MaxDepth        = 500      // nesting
	MaxParts        = 8192     // And, Or, Not and comparisons
	MaxPatterns     = 64 << 10 // bytes of all regular expressions
	MaxPatternSteps = 8192     // of all regular expressions, with repetitions expanded
)

// places returns the place for each value of store_v1.Place except the first one.
func places() [store_v1.Place_PLACE_ROOT_NAME + 1]tracestore.Place {
	return [...]tracestore.Place{
		store_v1.Place_PLACE_ANY_ATTRIBUTE:      tracestore.AnyAttribute,
		store_v1.Place_PLACE_SPAN_ATTRIBUTE:     tracestore.SpanAttribute,
		store_v1.Place_PLACE_RESOURCE_ATTRIBUTE: tracestore.ResourceAttribute,
		store_v1.Place_PLACE_SCOPE_ATTRIBUTE:    tracestore.ScopeAttribute,
		store_v1.Place_PLACE_EVENT_ATTRIBUTE:    tracestore.EventAttribute,
		store_v1.Place_PLACE_LINK_ATTRIBUTE:     tracestore.LinkAttribute,
		store_v1.Place_PLACE_SERVICE:            tracestore.Service,
		store_v1.Place_PLACE_NAME:               tracestore.Name,
		store_v1.Place_PLACE_KIND:               tracestore.Kind,
		store_v1.Place_PLACE_STATUS:             tracestore.Status,
		store_v1.Place_PLACE_STATUS_MESSAGE:     tracestore.StatusMessage,
		store_v1.Place_PLACE_DURATION:           tracestore.Duration,
		store_v1.Place_PLACE_SCOPE_NAME:         tracestore.ScopeName,
		store_v1.Place_PLACE_SCOPE_VERSION:      tracestore.ScopeVersion,
		store_v1.Place_PLACE_EVENT_NAME:         tracestore.EventName,
		store_v1.Place_PLACE_PARENT_ID:          tracestore.ParentID,
		store_v1.Place_PLACE_TRACE_DURATION:     tracestore.TraceDuration,
		store_v1.Place_PLACE_ROOT_SERVICE:       tracestore.RootService,
		store_v1.Place_PLACE_ROOT_NAME:          tracestore.RootName,
	}
}

// operators returns the operator for each value of store_v1.Operator except the first one.
func operators() [store_v1.Operator_OPERATOR_EXISTS + 1]tracestore.Op {
	return [...]tracestore.Op{
		store_v1.Operator_OPERATOR_EQ:     tracestore.Eq,
		store_v1.Operator_OPERATOR_NE:     tracestore.Ne,
		store_v1.Operator_OPERATOR_LT:     tracestore.Lt,
		store_v1.Operator_OPERATOR_LE:     tracestore.Le,
		store_v1.Operator_OPERATOR_GT:     tracestore.Gt,
		store_v1.Operator_OPERATOR_GE:     tracestore.Ge,
		store_v1.Operator_OPERATOR_LIKE:   tracestore.Like,
		store_v1.Operator_OPERATOR_EXISTS: tracestore.Exists,
	}
}

// putExpr returns nil for nil, which holds for every span.
func putExpr(e tracestore.Expr) *store_v1.Expr {
	switch e := e.(type) {
	case tracestore.And:
		return &store_v1.Expr{Expr: &store_v1.Expr_And{And: putParts(e)}}
	case tracestore.Or:
		return &store_v1.Expr{Expr: &store_v1.Expr_Or{Or: putParts(e)}}
	case tracestore.Not:
		return &store_v1.Expr{Expr: &store_v1.Expr_Not{Not: putPart(e.Expr)}}
	case tracestore.Cond:
		return &store_v1.Expr{Expr: &store_v1.Expr_Condition{Condition: putCondition(e)}}
	}
	return nil
}

func putParts(parts []tracestore.Expr) *store_v1.Exprs {
	out := &store_v1.Exprs{Parts: make([]*store_v1.Expr, len(parts))}
	for i, p := range parts {
		out.Parts[i] = putPart(p)
	}
	return out
}

// putPart is like putExpr, but uses an And without parts for nil.
func putPart(e tracestore.Expr) *store_v1.Expr {
	if e == nil {
		e = tracestore.And{}
	}
	return putExpr(e)
}

func putCondition(c tracestore.Cond) *store_v1.Condition {
	out := &store_v1.Condition{Field: putField(c.Field)}
	for i, op := range operators() {
		if i > 0 && op == c.Op {
			out.Operator = store_v1.Operator(i)
		}
	}
	switch {
	case c.Value.IsNumber:
		out.Value = &store_v1.Condition_Number{Number: c.Value.Number}
	case c.Value.Regexp != nil:
		out.Value = &store_v1.Condition_Pattern{Pattern: []byte(c.Value.Regexp.String())}
	default:
		out.Value = &store_v1.Condition_Text{Text: []byte(c.Value.Text)}
	}
	return out
}

func putField(f tracestore.Field) *store_v1.Field {
	out := &store_v1.Field{Key: []byte(f.Key)}
	for i, p := range places() {
		if i > 0 && p == f.Place {
			out.Place = store_v1.Place(i)
		}
	}
	return out
}

// exprReader converts the conditions of one request within the limits.
type exprReader struct{ parts, patterns, steps int }

// get returns the condition of a message, which is nil for nil.
func (r *exprReader) get(m *store_v1.Expr, depth int) (tracestore.Expr, error) {
	if m == nil {
		return nil, nil //nolint:nilnil // nil is a condition
	}
	if depth > MaxDepth {
		return nil, invalid("condition is nested more than %d deep", MaxDepth)
	}
	if r.parts++; r.parts > MaxParts {
		return nil, invalid("conditions have more than %d parts", MaxParts)
	}
	switch e := m.GetExpr().(type) {
	case *store_v1.Expr_And:
		parts, err := r.all(e.And, depth)
		return tracestore.And(parts), err
	case *store_v1.Expr_Or:
		parts, err := r.all(e.Or, depth)
		return tracestore.Or(parts), err
	case *store_v1.Expr_Not:
		inner, err := r.get(e.Not, depth+1)
		return tracestore.Not{Expr: inner}, err
	case *store_v1.Expr_Condition:
		return r.condition(e.Condition)
	}
	return nil, invalid("unknown condition; the server may be older than the client")
}

func (r *exprReader) all(m *store_v1.Exprs, depth int) ([]tracestore.Expr, error) {
	parts := make([]tracestore.Expr, len(m.GetParts()))
	for i, p := range m.GetParts() {
		var err error
		if parts[i], err = r.get(p, depth+1); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

func (r *exprReader) condition(m *store_v1.Condition) (tracestore.Expr, error) {
	f, err := getField(m.GetField())
	if err != nil {
		return nil, err
	}
	op := m.GetOperator()
	if op <= 0 || int(op) >= len(operators()) {
		return nil, invalid("unknown operator %d", op)
	}
	c := tracestore.Cond{Field: f, Op: operators()[op]}
	switch v := m.GetValue().(type) {
	case *store_v1.Condition_Text:
		c.Value = tracestore.Text(string(v.Text))
	case *store_v1.Condition_Number:
		c.Value = tracestore.Number(v.Number)
	case *store_v1.Condition_Pattern:
		re, err := r.pattern(string(v.Pattern))
		if err != nil {
			return nil, err
		}
		c.Value = tracestore.Pattern(re)
	default:
		return nil, invalid("condition without a known constant")
	}
	return c, nil
}

func (r *exprReader) pattern(text string) (*regexp.Regexp, error) {
	if r.patterns += len(text); r.patterns > MaxPatterns {
		return nil, invalid("regular expressions have more than %d bytes", MaxPatterns)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, invalid("%w", err)
	}
	if r.steps += tracestore.PatternSteps(tree, MaxPatternSteps); r.steps > MaxPatternSteps {
		return nil, invalid("regular expressions have more than %d steps with repetitions expanded", MaxPatternSteps)
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, invalid("%w", err)
	}
	return re, nil
}

func getField(m *store_v1.Field) (tracestore.Field, error) {
	p := m.GetPlace()
	if p <= 0 || int(p) >= len(places()) {
		return tracestore.Field{}, invalid("unknown place %d of a field", p)
	}
	return tracestore.Field{Place: places()[p], Key: string(m.GetKey())}, nil
}
