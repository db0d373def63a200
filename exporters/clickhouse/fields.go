package clickhouse

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/rows"
	"github.com/tracing-backend/tracing/exporters/clickhouse/internal/where"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Forms of the text of a value in a result of the server. Numbers become texts here, so that the
// texts are the same as in all other stores.
const (
	formAbsent   = "-" // the span has no value
	formText     = "s"
	formFloat    = "f" // the bits of a float, as a decimal number
	formDuration = "d" // nanoseconds
)

// textOf returns the text of a value that the server returned. ok is false if there is none.
func textOf(form, text string) (value string, ok bool, err error) {
	switch form {
	case formAbsent:
		return "", false, nil
	case formText:
		return text, true, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return "", false, tracestore.Damaged("number of the server cannot be read", err)
	}
	f := math.Float64frombits(n)
	if form == formDuration {
		f = float64(n)
	}
	return otlpdata.DoubleValue(f).AsString(), true, nil
}

// shortText returns the expression of storequery.FacetText of a text column.
func shortText(column string) string {
	const limit = storequery.MaxFacetText
	var cut []string
	for n := limit; n > limit-utf8.UTFMax; n-- { // a character begins after n bytes
		cut = append(cut, fmt.Sprintf("bitAnd(ascii(substring(%s, %d, 1)), 192) != 128, %d", column, n+1, n))
	}
	return fmt.Sprintf("if(length(%[1]s) <= %[2]d, toString(%[1]s), substring(%[1]s, 1, multiIf(%[3]s, %[2]d)))",
		column, limit, strings.Join(cut, ", "))
}

// pairValue returns the form of the values of a pair of columns, and the expression of the short
// text of a value.
func pairValue(p rows.Pair, value string) (form, text string) {
	switch p {
	case rows.PairInt:
		return formText, "toString(" + value + ")"
	case rows.PairFloat:
		return formFloat, "toString(reinterpretAsUInt64(" + value + "))"
	}
	return formText, shortText(value)
}

// keysOf returns the keys of a field in the table of spans.
func keysOf(f tracestore.Field) (keys []string) {
	for _, p := range where.Prefixes(f.Place) {
		keys = append(keys, p+f.Key)
	}
	return keys
}

// occurrences returns the expression of the number of values of a field.
func occurrences(f tracestore.Field) string {
	switch {
	case f.Place == tracestore.EventName:
		return "length(event_names)"
	case !f.Place.HasKey():
		return "1"
	}
	var parts []string
	for _, p := range rows.Pairs() {
		switch keys := where.Keys(p, f); len(keys) {
		case 0:
		case 1:
			parts = append(parts, "countEqual("+p.Keys()+", "+where.Text(keys[0])+")")
		default:
			parts = append(parts, "arrayCount(x -> x IN ("+where.Texts(keys)+"), "+p.Keys()+")")
		}
	}
	return strings.Join(parts, " + ")
}

// fieldValue returns the expressions of the form and the text of the value of a field. They are
// valid for spans with at most one value.
func fieldValue(f tracestore.Field) (form, text string) {
	column, isText := where.Column(f.Place)
	switch {
	case f.Parent: // it is not known
		return where.Text(formAbsent), "''"
	case isText:
		return where.Text(formText), shortText(column)
	case f.Place == tracestore.Duration:
		return where.Text(formDuration), "toString(duration)"
	case f.Place == tracestore.ErrorGroup:
		return "if(" + where.HasErrorGroup + ", '" + formText + "', '" + formAbsent + "')", "toString(error_group)"
	case f.Place == tracestore.EventName:
		return "if(empty(event_names), '" + formAbsent + "', '" + formText + "')", shortText("event_names[1]")
	case !f.Place.HasKey():
		return where.Text(formAbsent), "''"
	}
	return attributeValue(f)
}

func attributeValue(f tracestore.Field) (form, text string) {
	var forms, texts []string
	for _, p := range rows.Pairs() {
		keys := where.Keys(p, f)
		if len(keys) == 0 {
			continue
		}
		at := indexOf(p, keys)
		pairForm, pairText := pairValue(p, p.Values()+"["+at+"]")
		forms = append(forms, at+" > 0, '"+pairForm+"'")
		texts = append(texts, at+" > 0, "+pairText)
	}
	return "multiIf(" + strings.Join(forms, ", ") + ", '" + formAbsent + "')", "multiIf(" + strings.Join(texts, ", ") + ", '')"
}

// numberValue returns the expression of the number of a field, which is not finite if there is
// none. It is valid for spans with at most one value.
func numberValue(f tracestore.Field) string {
	if f.Place == tracestore.Duration && !f.Parent {
		return "toFloat64(duration)"
	}
	var values []string
	if f.Place.HasKey() && !f.Parent { // others are texts, or properties that the table of spans does not have
		for _, p := range []rows.Pair{rows.PairInt, rows.PairFloat} {
			if keys := where.Keys(p, f); len(keys) > 0 {
				at := indexOf(p, keys)
				values = append(values, at+" > 0, toFloat64("+p.Values()+"["+at+"])")
			}
		}
	}
	if len(values) == 0 {
		return "materialize(nan)" // a constant would drop out of the columns to group by
	}
	return "multiIf(" + strings.Join(values, ", ") + ", nan)"
}

// indexOf returns the expression of the index of the first of some keys in a pair of columns.
func indexOf(p rows.Pair, keys []string) string {
	if len(keys) > 1 {
		return "arrayFirstIndex(x -> x IN (" + where.Texts(keys) + "), " + p.Keys() + ")"
	}
	return "indexOf(" + p.Keys() + ", " + where.Text(keys[0]) + ")"
}
