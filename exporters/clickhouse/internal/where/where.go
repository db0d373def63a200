// Package where translates conditions of package tracestore into SQL on the table of spans.
//
// The translation yields two conditions: one that holds for every span for which the original
// holds, and one that holds only for such spans. Usually they are the same. They differ where the
// server's result may differ for some values, such as a regular expression on invalid UTF-8; then
// only the rows between the two need tracestore.Match.
package where

import (
	"strings"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Condition is the translation of an expression.
type Condition struct {
	// SQL holds for every span for which the expression holds. It is for the WHERE clause of a
	// statement that reads the table of spans, because it includes what skip indexes need.
	SQL string
	// Sure holds only for spans for which the expression holds. It may stand in any place of a
	// statement.
	Sure string
	// Exact reports whether SQL and Sure hold for the same spans. Otherwise the caller must apply
	// tracestore.Match to the spans for which SQL holds and Sure does not.
	Exact bool
	// Whole reports that data in the table of payload, but not in the table of spans, decides
	// between SQL and Sure: the id of the parent, or the data that tracestore.Match needs for an
	// error group.
	Whole bool
}

// Constant conditions, which Any understands.
const (
	Always = "1"
	Never  = "0"
)

// Always reports whether the condition holds for every span.
func (c Condition) Always() bool { return c.Sure == Always }

// Never reports whether the condition holds for no span.
func (c Condition) Never() bool { return c.SQL == Never }

// Build translates an expression. Fields of the trace have no value, as in tracestore.Reader.Find.
// payload is what follows FROM in a statement that selects rows of the table of payload: its name,
// and a condition that holds for all spans to which the translation is applied.
func Build(e tracestore.Expr, payload string) Condition {
	b := builder{payload: payload}.build(e)
	c := Condition{SQL: b.may, Sure: b.must, Exact: b.may == b.must}
	c.Whole = b.whole && !c.Exact
	if b.hint != "" && b.may != Never {
		c.SQL = all("indexHint("+b.hint+")", b.may)
	}
	return c
}

// OnIDs returns the condition for spans of traces for whose ids an expression holds. Its fields are
// tracestore.TraceID.
func (c Condition) OnIDs(e tracestore.Expr) Condition {
	b := builder{ids: true}.build(e)
	c.SQL, c.Sure, c.Exact = all(c.SQL, b.may), all(c.Sure, b.must), c.Exact && b.may == b.must
	return c
}

// bounds encloses a condition.
type bounds struct {
	may   string // holds wherever the condition may hold
	must  string // holds only where the condition holds
	hint  string // for skip indexes: a consequence of may, or ""
	whole bool   // see Condition.Whole
}

// exactly returns the bounds of a condition that SQL can express.
func exactly(sql string) bounds { return bounds{may: sql, must: sql} }

type builder struct {
	payload string
	ids     bool // tracestore.TraceID has a value
}

func (t builder) build(e tracestore.Expr) bounds {
	switch e := e.(type) {
	case nil:
		return exactly(Always)
	case tracestore.And:
		return t.and(e)
	case tracestore.Or:
		return t.or(e)
	case tracestore.Not:
		part := t.build(e.Expr)
		return bounds{may: not(part.must), must: not(part.may), whole: part.whole}
	case tracestore.Cond:
		return t.cond(e)
	}
	return exactly(Never)
}

func (t builder) and(parts []tracestore.Expr) (out bounds) {
	var may, must, hints []string
	for _, part := range parts {
		b := t.build(part)
		may, must = append(may, b.may), append(must, b.must)
		out.whole = out.whole || b.whole
		if b.hint != "" {
			hints = append(hints, b.hint)
		}
	}
	out.may, out.must = all(may...), all(must...)
	if len(hints) > 0 {
		out.hint = all(hints...)
	}
	return out
}

// or returns a hint only if every part that may hold has one.
func (t builder) or(parts []tracestore.Expr) (out bounds) {
	var may, must, hints []string
	hinted := true
	for _, part := range parts {
		b := t.build(part)
		may, must = append(may, b.may), append(must, b.must)
		out.whole = out.whole || b.whole
		if b.hint != "" {
			hints = append(hints, b.hint)
		} else if b.may != Never {
			hinted = false
		}
	}
	out.may, out.must = Any(may...), Any(must...)
	if hinted && len(hints) > 0 {
		out.hint = Any(hints...)
	}
	return out
}

// all returns the conjunction of conditions.
func all(parts ...string) string { return join(" AND ", Always, Never, parts) }

// Any returns the disjunction of conditions.
func Any(parts ...string) string { return join(" OR ", Never, Always, parts) }

// join joins conditions, where neutral changes nothing and absorbing decides the result.
func join(operator, neutral, absorbing string, parts []string) string {
	var kept []string
	for _, part := range parts {
		switch part {
		case absorbing:
			return absorbing
		case neutral:
		default:
			kept = append(kept, part)
		}
	}
	switch len(kept) {
	case 0:
		return neutral
	case 1:
		return kept[0]
	}
	return "(" + strings.Join(kept, operator) + ")"
}

func not(sql string) string {
	switch sql {
	case Always:
		return Never
	case Never:
		return Always
	}
	return "NOT (" + sql + ")"
}
