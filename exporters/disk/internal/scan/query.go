package scan

import (
	"encoding/base64"
	"math"
	"strconv"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// verdict is the truth of a condition as far as it is known.
type verdict uint8

const (
	no verdict = iota
	yes
	depends
)

func verdictOf(b bool) verdict {
	if b {
		return yes
	}
	return no
}

// exprKind is how an expression combines its parts. Without parts andExpr is true and orExpr is
// false.
type exprKind uint8

const (
	andExpr exprKind = iota
	orExpr
	notExpr // has one part
	condExpr
)

// expr is a tracestore.Expr whose conditions are numbered.
type expr struct {
	kind  exprKind
	parts []expr
	cond  int
}

// cond is a condition of the query, with properties that do not depend on data.
type cond struct {
	tracestore.Cond
	attribute     bool // the field is an attribute of spans, events or links, perhaps among others
	service       bool // the condition selects one service
	hasFilterText bool // the condition compares an attribute for equality with filterText, which filters can exclude
	filterText    string
	onlyText      bool // only strings can match, or strings in arrays
}

// Query is a compiled tracestore.Query.
type Query struct {
	tenant string
	where  expr
	conds  []cond
}

// Compile compiles a query.
func Compile(q tracestore.Query) *Query {
	c := &Query{tenant: q.Tenant}
	c.where = c.expr(q.Where)
	return c
}

func (q *Query) expr(e tracestore.Expr) expr {
	switch e := e.(type) {
	case nil:
		return expr{kind: andExpr}
	case tracestore.And:
		return expr{kind: andExpr, parts: q.parts(e)}
	case tracestore.Or:
		return expr{kind: orExpr, parts: q.parts(e)}
	case tracestore.Not:
		return expr{kind: notExpr, parts: q.parts([]tracestore.Expr{e.Expr})}
	case tracestore.Cond:
		q.conds = append(q.conds, newCond(e))
		return expr{kind: condExpr, cond: len(q.conds) - 1}
	}
	return expr{kind: orExpr}
}

func (q *Query) parts(list []tracestore.Expr) []expr {
	out := make([]expr, len(list))
	for i, e := range list {
		out[i] = q.expr(e)
	}
	return out
}

func newCond(e tracestore.Cond) cond {
	c := cond{Cond: e}
	switch e.Field.Place {
	case tracestore.AnyAttribute, tracestore.SpanAttribute, tracestore.EventAttribute, tracestore.LinkAttribute:
		c.attribute = true
	}
	c.service = e.Field.Place == tracestore.Service && e.Op == tracestore.Eq && !e.Value.IsNumber
	if c.attribute && e.Op == tracestore.Eq {
		c.filterText, c.hasFilterText = filterTextOf(e.Value)
	}
	c.onlyText = true
	for k := otlpdata.ValueEmpty; k <= otlpdata.ValueMap; k++ {
		if k != otlpdata.ValueString && c.possibleWhole(k) {
			c.onlyText = false
		}
	}
	return c
}

// maxExactInteger is the limit below which each integer has a float64 of its own.
const maxExactInteger = 1 << 53

// filterTextOf returns the text that represents values equal to a literal in filters. ok is false
// for a number that equals no integer, or several.
func filterTextOf(l tracestore.Literal) (text string, ok bool) {
	if !l.IsNumber {
		return l.Text, true
	}
	if n := l.Number; n == math.Trunc(n) && math.Abs(n) < maxExactInteger {
		return strconv.FormatInt(int64(n), 10), true
	}
	return "", false
}

// possible reports whether the condition may hold for a value of a kind, or for an element of an
// array. False positives are allowed.
func (c *cond) possible(k otlpdata.ValueKind) bool {
	return k == otlpdata.ValueArray || c.possibleWhole(k)
}

// possibleWhole is like possible, but disregards elements.
func (c *cond) possibleWhole(k otlpdata.ValueKind) bool {
	switch {
	case c.Value.Kind != otlpdata.ValueEmpty && k != c.Value.Kind:
		return false
	case c.Op == tracestore.Exists:
		return true
	case c.Op == tracestore.Like:
		return c.Value.Regexp != nil
	case c.Value.IsNumber:
		return k == otlpdata.ValueInt || k == otlpdata.ValueDouble
	case c.Op == tracestore.Eq:
		return canFormat(k, c.Value.Text)
	}
	return c.Op == tracestore.Ne || k == otlpdata.ValueString
}

// canFormat reports whether a value of a kind may have text as its string form.
func canFormat(k otlpdata.ValueKind, text string) bool {
	var err error
	switch k {
	case otlpdata.ValueEmpty:
		return text == ""
	case otlpdata.ValueBool:
		return text == "true" || text == "false"
	case otlpdata.ValueInt:
		_, err = strconv.ParseInt(text, 10, 64)
	case otlpdata.ValueDouble:
		_, err = strconv.ParseFloat(text, 64)
	case otlpdata.ValueBytes:
		_, err = base64.StdEncoding.DecodeString(text)
	case otlpdata.ValueArray:
		return len(text) > 0 && text[0] == '['
	case otlpdata.ValueMap:
		return len(text) > 0 && text[0] == '{'
	}
	return err == nil
}
