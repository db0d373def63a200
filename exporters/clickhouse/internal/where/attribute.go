package where

import (
	"encoding/base64"
	"math"
	"strconv"
	"strings"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Prefixes returns the prefixes that the keys of attributes of a place have in the table of spans.
func Prefixes(p tracestore.Place) []string {
	switch p {
	case tracestore.SpanAttribute:
		return []string{rows.PrefixSpan}
	case tracestore.ResourceAttribute:
		return []string{rows.PrefixResource}
	case tracestore.ScopeAttribute:
		return []string{rows.PrefixScope}
	case tracestore.EventAttribute:
		return []string{rows.PrefixEvent}
	case tracestore.LinkAttribute:
		return []string{rows.PrefixLink}
	}
	return []string{rows.PrefixSpan, rows.PrefixResource, rows.PrefixScope, rows.PrefixEvent, rows.PrefixLink}
}

// Searched returns the expression that skip indexes contain for a pair of columns: the values,
// which are cheap to index, or strings `key=value` if many attributes share few values.
func Searched(p rows.Pair) string {
	switch p {
	case rows.PairInt:
		return "arrayMap((k, v) -> concat(k, '=', toString(v)), " + p.Keys() + ", " + p.Values() + ")"
	case rows.PairOther:
		return "arrayMap((k, v) -> concat(k, '=', v), " + p.Keys() + ", " + p.Values() + ")"
	}
	return p.Values()
}

// attribute is the key of an attribute, and the prefixes of its places.
type attribute struct {
	key      string
	prefixes []string
}

// keys returns the keys that the attribute may have in a pair.
func (a attribute) keys(p rows.Pair) (keys []string) {
	for _, prefix := range a.prefixes {
		if p.Holds(prefix) {
			keys = append(keys, prefix+a.key)
		}
	}
	return keys
}

// Keys returns the keys that the attribute of a field may have in a pair of columns.
func Keys(p rows.Pair, f tracestore.Field) []string {
	return attribute{f.Key, Prefixes(f.Place)}.keys(p)
}

// Counted returns the keys of [Keys] and of the elements of arrays that facets count.
func Counted(p rows.Pair, f tracestore.Field) []string {
	a := attribute{f.Key, Prefixes(f.Place)}
	return append(a.keys(p), attribute{f.Key, elementPrefixes(a.prefixes)}.keys(p)...)
}

// Listed returns the keys of [Keys] and of all elements of arrays.
func Listed(p rows.Pair, f tracestore.Field) []string {
	a := attribute{f.Key, Prefixes(f.Place)}
	return append(a.keys(p), attribute{f.Key, allElementPrefixes(a.prefixes)}.keys(p)...)
}

// elementPrefixes returns the prefixes of keys of elements that facets count.
func elementPrefixes(of []string) (out []string) {
	for _, prefix := range of {
		out = append(out, rows.ElementPrefix(prefix))
	}
	return out
}

// allElementPrefixes returns the prefixes of keys of all elements.
func allElementPrefixes(of []string) []string {
	out := elementPrefixes(of)
	for _, prefix := range of {
		out = append(out, rows.SameTextPrefix(prefix))
	}
	return out
}

// attributeCond translates a condition on an attribute.
func attributeCond(c tracestore.Cond) bounds {
	a := attribute{c.Field.Key, Prefixes(c.Field.Place)}
	switch {
	case c.Op == tracestore.Ne:
		return a.differs(c)
	case c.Op != tracestore.Exists || c.Value.Kind != otlpdata.ValueEmpty:
		a.prefixes = append(a.prefixes, allElementPrefixes(a.prefixes)...)
	}
	b := a.anyPair(c)
	b.hint = a.hint(c)
	return b
}

// anyPair returns the condition that a condition holds in one of the pairs.
func (a attribute) anyPair(c tracestore.Cond) bounds {
	var may, must []string
	for _, p := range rows.Pairs() {
		value := valueCond(p, c)
		may, must = append(may, a.exists(p, value.may)), append(must, a.exists(p, value.must))
	}
	return bounds{may: Any(may...), must: Any(must...)}
}

// differs translates a condition with Ne. It holds for an array if the array or an element differs
// and none is equal. If several events or links have arrays, it is unknown which one an element is
// of. Otherwise, a key has one array: OTLP allows no duplicate keys.
func (a attribute) differs(c tracestore.Cond) bounds {
	isArray := "startsWith(v, '[')"
	equal := c
	equal.Op = tracestore.Eq
	var may, must []string
	for _, p := range rows.Pairs() {
		value := valueCond(p, c)
		if p == rows.PairOther && c.Value.Kind == otlpdata.ValueEmpty {
			value.may, value.must = all(value.may, not(isArray)), all(value.must, not(isArray))
		}
		may, must = append(may, a.exists(p, value.may)), append(must, a.exists(p, value.must))
	}
	for _, prefix := range a.prefixes {
		elements := attribute{a.key, allElementPrefixes([]string{prefix})}
		other := elements.anyPair(c)
		if c.Value.Kind == otlpdata.ValueEmpty && !c.Value.IsNumber { // compares the array as well, with any type
			differs := valueCond(rows.PairOther, c).may
			other = exactly(attribute{a.key, []string{prefix}}.exists(rows.PairOther, all(differs, isArray)))
		}
		same := elements.anyPair(equal)
		several := Never
		if prefix == rows.PrefixEvent || prefix == rows.PrefixLink {
			several = "arrayCount((k, v) -> k = " + Text(prefix+a.key) + " AND " + isArray + ", " +
				rows.PairOther.Keys() + ", " + rows.PairOther.Values() + ") > 1"
		}
		may, must = append(may, all(other.may, Any(not(same.must), several))), append(must, all(other.must, not(same.may)))
	}
	return bounds{may: Any(may...), must: Any(must...)}
}

// exists returns the condition that a pair of columns has a value v of the attribute that meets a
// condition on v.
func (a attribute) exists(p rows.Pair, condition string) string {
	if condition == Never || len(a.keys(p)) == 0 {
		return Never
	}
	if value, ok := strings.CutPrefix(condition, "v = "); ok && value != Text("") && p != rows.PairFloat {
		// The server finds a value in an array faster than it evaluates a lambda, and evaluates the
		// second condition only for rows for which the first one holds. It does not find an empty
		// string in an array of LowCardinality. Its index does not find -0 when it looks for 0.
		return all("has("+p.Values()+", "+value+")", a.existsPair(p, condition))
	}
	return a.existsPair(p, condition)
}

func (a attribute) existsPair(p rows.Pair, condition string) string {
	keys := a.keys(p)
	isKey := "k IN (" + Texts(keys) + ")"
	if len(keys) == 1 {
		isKey = "k = " + Text(keys[0])
	}
	switch {
	case condition == Always && len(keys) == 1:
		return "has(" + p.Keys() + ", " + Text(keys[0]) + ")"
	case condition == Always:
		return "arrayExists(k -> " + isKey + ", " + p.Keys() + ")"
	}
	return "arrayExists((k, v) -> " + isKey + " AND " + condition + ", " + p.Keys() + ", " + p.Values() + ")"
}

// valueCond is the condition on a value v of a pair.
func valueCond(p rows.Pair, c tracestore.Cond) bounds {
	switch kind := c.Value.Kind; {
	case kind == otlpdata.ValueBool && p == rows.PairOther:
		return boolCond(c)
	case kind == otlpdata.ValueBool, kind == otlpdata.ValueString && !p.HoldsStrings():
		return exactly(Never)
	}
	switch p {
	case rows.PairInt:
		return intCond(c)
	case rows.PairFloat:
		return floatCond(c)
	case rows.PairOther:
		return otherCond(c)
	case rows.PairStr, rows.PairText:
		if c.Op == tracestore.Eq && rows.PairOfString(c.Value.Text) != p {
			return exactly(Never)
		}
	}
	return textCond("v", c)
}

// intCond is the condition on an integer v.
func intCond(c tracestore.Cond) bounds {
	switch {
	case c.Op == tracestore.Exists:
		return exactly(Always)
	case c.Op == tracestore.Like:
		return like("toString(v)", c.Value.Regexp)
	case c.Value.IsNumber:
		return exactly(signed().compare("v", c.Op, c.Value.Number))
	case c.Op == tracestore.Eq || c.Op == tracestore.Ne:
		n, ok := parseInt(c.Value.Text)
		if !ok {
			return exactly(boolean(c.Op == tracestore.Ne))
		}
		equal := "v = " + strconv.FormatInt(n, 10)
		if c.Op == tracestore.Ne {
			return exactly(not(equal))
		}
		return exactly(equal)
	}
	return exactly(Never)
}

// floatCond is the condition on a float v. The server writes floats in another text form.
func floatCond(c tracestore.Cond) bounds {
	switch {
	case c.Op == tracestore.Exists:
		return exactly(Always)
	case c.Op == tracestore.Like:
		return bounds{may: Always, must: Never}.orNever(c)
	case c.Value.IsNumber:
		return exactly(compareFloat("v", c.Op, c.Value.Number))
	case c.Op == tracestore.Eq || c.Op == tracestore.Ne:
		f, ok := parseFloat(c.Value.Text)
		if !ok {
			return exactly(boolean(c.Op == tracestore.Ne))
		}
		if c.Op == tracestore.Ne {
			return exactly(not(sameFloat("v", f)))
		}
		return exactly(sameFloat("v", f))
	}
	return exactly(Never)
}

// sameFloat returns the condition that a column has the text form of f. It distinguishes 0 and -0,
// but not NaNs.
func sameFloat(column string, f float64) string {
	switch {
	case math.IsNaN(f):
		return "isNaN(" + column + ")"
	case f == 0 && math.Signbit(f):
		return "(" + column + " = 0 AND 1 / " + column + " < 0)"
	case f == 0:
		return "(" + column + " = 0 AND 1 / " + column + " > 0)"
	}
	return column + " = " + sqlFloat(f)
}

// otherCond is the condition on the text form v of a value that is neither a string nor a number.
func otherCond(c tracestore.Cond) bounds {
	switch c.Op {
	case tracestore.Lt, tracestore.Le, tracestore.Gt, tracestore.Ge:
		return exactly(Never)
	case tracestore.Eq:
		if !mayBeOther(c.Value.Text) {
			return exactly(Never)
		}
	}
	return textCond("v", c)
}

// boolCond is the condition on the text form v of a value that may be a boolean. It also holds for
// the three bytes whose base64 form is "true". That is accepted, because the column does not store
// the type.
func boolCond(c tracestore.Cond) bounds {
	var texts []string
	for _, b := range []bool{false, true} {
		if c.Holds(otlpdata.BoolValue(b)) {
			texts = append(texts, strconv.FormatBool(b))
		}
	}
	switch len(texts) {
	case 0:
		return exactly(Never)
	case 1:
		return exactly("v = " + Text(texts[0]))
	}
	return exactly("v IN (" + Texts(texts) + ")")
}

// mayBeOther reports whether a text may be the text form of a value that is neither a string nor a
// number: of a boolean, of an array or a map in JSON, of bytes in base64, or of an empty value.
func mayBeOther(text string) bool {
	if text == "true" || text == "false" || strings.HasPrefix(text, "[") || strings.HasPrefix(text, "{") {
		return true
	}
	_, err := base64.StdEncoding.DecodeString(text)
	return err == nil // also for an empty text
}

// maxHint is the length above which a text is not repeated for skip indexes.
const maxHint = 1 << 10

// hint returns the part of a condition that skip indexes can test, or "".
func (a attribute) hint(c tracestore.Cond) string {
	if c.Op != tracestore.Eq || len(c.Value.Text) > maxHint {
		return ""
	}
	if c.Value.IsNumber {
		return a.numberHint(c.Value.Number)
	}
	var parts []string
	for _, p := range rows.Pairs() {
		if valueCond(p, c).may == Never || len(a.keys(p)) == 0 {
			continue
		}
		part := a.hasText(p, c.Value.Text)
		if p == rows.PairFloat {
			f, _ := parseFloat(c.Value.Text)
			part = hasFloat(f)
		}
		if part == "" {
			return ""
		}
		parts = append(parts, part)
	}
	return Any(parts...)
}

// numberHint is the hint for a comparison with a number. Integers are compared as floats, so there
// is no hint if several integers equal the number.
func (a attribute) numberHint(n float64) string {
	const exact = 1 << 53
	if math.IsNaN(n) || math.Abs(n) >= exact {
		return ""
	}
	parts := []string{hasFloat(n)}
	if n == 0 {
		parts = append(parts, hasFloat(-n))
	}
	if n == math.Trunc(n) {
		parts = append(parts, a.hasText(rows.PairInt, strconv.FormatInt(int64(n), 10)))
	}
	return Any(parts...)
}

// hasText returns the condition that a pair has a value of this text form, of the attribute if the
// index knows keys. It returns "" for an empty text, which the server may not find.
func (a attribute) hasText(p rows.Pair, value string) string {
	if p != rows.PairInt && p != rows.PairOther {
		if value == "" {
			return ""
		}
		return "has(" + Searched(p) + ", " + Text(value) + ")"
	}
	var terms []string
	for _, key := range a.keys(p) {
		terms = append(terms, Text(key+"="+value))
	}
	return "hasAny(" + Searched(p) + ", [" + strings.Join(terms, ", ") + "])"
}

// hasFloat returns the condition that a span has a float, or "" for NaN, which has several forms.
func hasFloat(f float64) string {
	if math.IsNaN(f) {
		return ""
	}
	return "has(" + Searched(rows.PairFloat) + ", toFloat64(" + sqlFloat(f) + "))"
}

// CountedKey returns the condition that facets count a key of OfSpanOrResource or of elements.
func CountedKey(key string) string {
	conditions := []string{OfSpanOrResource(key)}
	for _, prefix := range elementPrefixes([]string{rows.PrefixSpan, rows.PrefixResource}) {
		conditions = append(conditions, "startsWith("+key+", "+Text(prefix)+")")
	}
	return strings.Join(conditions, " OR ")
}

// OfSpanOrResource returns the condition that a key belongs to an attribute of a span or resource.
func OfSpanOrResource(key string) string {
	return "startsWith(" + key + ", " + Text(rows.PrefixSpan) + ") OR startsWith(" + key + ", " + Text(rows.PrefixResource) + ")"
}

// AllKeys returns the expression of the keys of all attributes of a span.
func AllKeys() string {
	var columns []string
	for _, p := range rows.Pairs() {
		columns = append(columns, "`"+p.Keys()+"`")
	}
	return "arrayConcat(" + strings.Join(columns, ", ") + ")"
}

// Repeats returns the condition that a key x of a span occurs twice and meets a condition.
func Repeats(condition string) string {
	keys := "arrayFilter(x -> " + condition + ", " + AllKeys() + ")"
	return "length(" + keys + ") != arrayUniq(" + keys + ")"
}
