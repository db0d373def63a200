package where

import (
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// cond translates one condition.
func (t builder) cond(c tracestore.Cond) bounds {
	if c.Op > tracestore.Exists {
		return exactly(Never)
	}
	switch p := c.Field.Place; {
	case p.HasKey():
		return attributeCond(c)
	case p == tracestore.Duration:
		return durationCond(c)
	case p == tracestore.EventName:
		return eventNameCond(c)
	case p == tracestore.ParentID:
		return t.parent(c)
	case p == tracestore.AnyText:
		return anyTextCond(c)
	case p == tracestore.TraceID && t.ids:
		return textCond("lower(hex(trace_id))", c)
	case p == tracestore.ErrorGroup:
		b := textCond("error_group", c)
		return bounds{may: all(HasErrorGroup, b.may), must: all(HasErrorGroup, b.must), whole: true}
	default:
		if column, ok := Column(p); ok {
			return textCond(column, c)
		}
	}
	return exactly(Never) // no value
}

// columns are the columns of text properties. Every span has exactly one value of each.
var columns = map[tracestore.Place]string{
	tracestore.Service:       "service",
	tracestore.Name:          "name",
	tracestore.Kind:          "kind",
	tracestore.Status:        "status",
	tracestore.StatusMessage: "status_message",
	tracestore.ScopeName:     "scope_name",
	tracestore.ScopeVersion:  "scope_version",
}

// HasErrorGroup is the condition on spans that have a value of tracestore.ErrorGroup, which is in
// the column error_group.
const HasErrorGroup = "status = 'error'"

// Column returns the column of a text property. ok is false for other places.
func Column(p tracestore.Place) (column string, ok bool) {
	column, ok = columns[p]
	return column, ok
}

// textCond is the condition on one string value.
func textCond(column string, c tracestore.Cond) bounds {
	switch {
	case c.Op == tracestore.Exists:
		return exactly(Always)
	case c.Op == tracestore.Like:
		return like(column, c.Value.Regexp)
	case c.Value.IsNumber:
		return exactly(Never)
	}
	symbol, _ := symbolOf(c.Op)
	return exactly(column + " " + symbol + " " + Text(c.Value.Text))
}

// overArray returns the bounds of "a condition on v holds for an element v of an array".
func overArray(b bounds, array string) bounds {
	exists := func(condition string) string {
		switch condition {
		case Always:
			return "notEmpty(" + array + ")"
		case Never:
			return Never
		}
		return "arrayExists(v -> " + condition + ", " + array + ")"
	}
	return bounds{may: exists(b.may), must: exists(b.must)}
}

func eventNameCond(c tracestore.Cond) bounds { return overArray(textCond("v", c), "event_names") }

// anyTextCond holds if the condition holds for the service, the name, the status message, the name
// of an event, or an attribute.
func anyTextCond(c tracestore.Cond) bounds {
	var parts []bounds
	for _, p := range tracestore.TextPlaces() {
		c.Field.Place = p
		parts = append(parts, builder{}.cond(c))
	}
	for _, p := range rows.Pairs() {
		part := overArray(valueCond(p, c), p.Values())
		if c.Op == tracestore.Ne { // an element may differ although another one of its array is equal
			part.must = Never
		}
		parts = append(parts, part)
	}
	var may, must []string
	for _, b := range parts {
		may, must = append(may, b.may), append(must, b.must)
	}
	return bounds{may: Any(may...), must: Any(must...)}
}

// parent compares the text form of the parent's id, which a root span does not have. The table of
// spans only says whether there is a parent.
func (t builder) parent(c tracestore.Cond) bounds {
	const hasParent = "root = 0"
	id, isID := parseSpanID(c.Value.Text)
	equality := c.Op == tracestore.Eq || c.Op == tracestore.Ne
	switch b := textCond("parent_id", c); {
	case c.Op == tracestore.Exists:
		return exactly(hasParent)
	case b.may == Never:
		return exactly(Never)
	case !equality:
		return bounds{may: hasParent, must: Never, whole: true}
	case !isID && c.Op == tracestore.Eq:
		return exactly(Never)
	case !isID:
		return exactly(hasParent)
	}
	// Spans of a trace that start at the same time may have different parents.
	children := "(trace_id, start) GLOBAL IN (SELECT trace_id, start FROM " + t.payload + " AND substring(ids, 9) = " + SpanID(id) + ")"
	if c.Op == tracestore.Eq {
		return bounds{may: all(hasParent, children), must: Never, whole: true}
	}
	return bounds{may: hasParent, must: all(hasParent, not(children)), whole: true}
}

// parseSpanID parses the text form of an id that is not zero.
func parseSpanID(text string) (id otlpdata.SpanID, ok bool) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(id) {
		return id, false
	}
	copy(id[:], b)
	return id, !id.IsZero() && id.String() == text
}

// durationCond compares the duration, whose value is a float.
func durationCond(c tracestore.Cond) bounds {
	const column = "duration"
	switch {
	case c.Op == tracestore.Exists:
		return exactly(Always)
	case c.Op == tracestore.Like:
		// The text forms of the integer and of the float are the same as long as the float is
		// exact.
		const exact = column + " <= 9007199254740992"
		b := like("toString("+column+")", c.Value.Regexp)
		return bounds{may: Any(b.may, not(exact)), must: all(b.must, exact)}.orNever(c)
	case c.Value.IsNumber:
		return exactly(unsigned().compare(column, c.Op, c.Value.Number))
	case c.Op == tracestore.Eq || c.Op == tracestore.Ne:
		n, ok := parseFloat(c.Value.Text)
		if !ok {
			return exactly(boolean(c.Op == tracestore.Ne))
		}
		return exactly(unsigned().compare(column, c.Op, n))
	}
	return exactly(Never)
}

// orNever returns b, or the bounds of a condition that never holds if c has no pattern.
func (b bounds) orNever(c tracestore.Cond) bounds {
	if c.Value.Regexp == nil {
		return exactly(Never)
	}
	return b
}

func boolean(b bool) string {
	if b {
		return Always
	}
	return Never
}

// parseInt parses the text form of an integer value. ok is false for any other text, including
// other ways to write the same integer.
func parseInt(text string) (n int64, ok bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && otlpdata.IntValue(n).AsString() == text
}

// parseFloat parses the text form of a float value. ok is false for any other text.
func parseFloat(text string) (f float64, ok bool) {
	if strings.ContainsAny(text, "xX_") {
		return 0, false
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil && otlpdata.DoubleValue(f).AsString() == text
}
