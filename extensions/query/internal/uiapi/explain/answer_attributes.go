package explain

import (
	"math"
	"regexp"
	"slices"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// attributesAnswer is the list of attributes.
type attributesAnswer struct {
	Traces int `json:"traces"` // traces whose attributes were read
	Tested int `json:"tested"` // keys
	Differ int `json:"differ"` // keys whose shares differ significantly, and enough to matter
	// Omitted reports whether there were too many keys to count all.
	Omitted bool              `json:"omitted"`
	Lines   []attributeAnswer `json:"lines"`
}

// attributeAnswer is a line of the list of attributes.
type attributeAnswer struct {
	attributeName
	// Deciles are the first and the last decile, of the other traces with the key, that a range
	// covers.
	Deciles  *[2]int         `json:"deciles,omitempty"`
	Kind     string          `json:"kind"`     // "input" or "outcome"
	Selected float64         `json:"selected"` // share of the comparable selected traces
	Rest     float64         `json:"rest"`     // share of the others
	Compared float64         `json:"compared"` // share of all selected traces that is comparable
	Traces   uint64          `json:"traces"`   // estimated number of selected traces
	Filter   string          `json:"filter"`   // spans with the attribute
	Exclude  string          `json:"exclude"`  // spans with another value of the key; "" if there is no such search
	Same     []attributeName `json:"same"`     // attributes of (nearly) the same traces
	// With is the index of an earlier line that explains this one's difference; -1 for none.
	With   int             `json:"with"`
	Values durationsAnswer `json:"values"`
}

// attributeName names a condition on an attribute.
type attributeName struct {
	Field   string `json:"field"`   // as in searches
	Service string `json:"service"` // the only service that has the key, or ""
	Op      string `json:"op"`      // "=", "exists" or "range"
	Value   string `json:"value"`   // for "="
	// Low and High are the bounds of a range, both inclusive; absent: no bound.
	Low  *float64 `json:"low,omitempty"`
	High *float64 `json:"high,omitempty"`
}

// answer returns the ranked list.
func (c *counter) answer(w weights) attributesAnswer {
	list, of := c.rankAttributes(), c.sides()
	out := attributesAnswer{Traces: len(c.traces), Tested: list.tested, Differ: list.differ, Omitted: list.omitted,
		Lines: make([]attributeAnswer, len(list.lines))}
	for i, l := range list.lines {
		filter, exclude := l.searches()
		out.Lines[i] = attributeAnswer{
			attributeName: l.name(), Kind: l.kind.String(), Selected: l.selected, Rest: l.rest, Compared: shareOf(l.covered, of.selected),
			Traces: round(float64(l.has.selected) * w.selected), Filter: filter, Exclude: exclude, Same: make([]attributeName, len(l.same)),
			With: slices.Index(list.lines, l.with), Values: c.durations(l, w),
		}
		for k, same := range l.same {
			out.Lines[i].Same[k] = same.name()
		}
		if v := &l.values; v.op == between {
			out.Lines[i].Deciles = &[2]int{v.first, v.last}
		}
	}
	return out
}

func bound(f float64) *float64 {
	if math.IsInf(f, 0) {
		return nil
	}
	return &f
}

func (l *attributeLine) name() attributeName {
	out := attributeName{Field: traceql.FormatField(l.field()), Op: [...]string{"=", "exists", "range"}[l.values.op], Value: l.values.text}
	if !l.key.several {
		out.Service = l.key.owner
	}
	if l.values.op == between {
		out.Low, out.High = bound(l.values.low), bound(l.values.high)
	}
	return out
}

func (l *attributeLine) field() tracestore.Field {
	return tracestore.Field{Place: l.key.place, Key: l.key.key}
}

// searches returns the searches for the spans with the attribute, and for the spans with another
// value of its key.
func (l *attributeLine) searches() (filter, exclude string) {
	compare := func(op tracestore.Op, v tracestore.Literal) tracestore.Expr {
		return tracestore.Cond{Field: l.field(), Op: op, Value: v}
	}
	switch v := &l.values; v.op {
	case exists:
		return l.search(compare(tracestore.Exists, tracestore.Literal{})), ""
	case between:
		in, out := tracestore.And{}, tracestore.Or{}
		if !math.IsInf(v.low, 0) {
			in, out = append(in, compare(tracestore.Ge, tracestore.Number(v.low))), append(out, compare(tracestore.Lt, tracestore.Number(v.low)))
		}
		if !math.IsInf(v.high, 0) {
			in, out = append(in, compare(tracestore.Le, tracestore.Number(v.high))), append(out, compare(tracestore.Gt, tracestore.Number(v.high)))
		}
		return l.search(in), l.search(out)
	default:
		if len(v.text) > storequery.MaxFacetText-utf8.UTFMax && utf8.ValidString(v.text) { // it may have been cut
			begins := tracestore.Pattern(regexp.MustCompile("^(?s:" + regexp.QuoteMeta(v.text) + ".*)$"))
			return l.search(compare(tracestore.Like, begins)), ""
		}
		return l.search(compare(tracestore.Eq, tracestore.Text(v.text))), l.search(compare(tracestore.Ne, tracestore.Text(v.text)))
	}
}

// search returns the search for spans that meet a condition and belong to the service of a
// resource.
func (l *attributeLine) search(e tracestore.Expr) string {
	if l.key.place == tracestore.ResourceAttribute {
		e = tracestore.And{serviceIs(l.key.service), e}
	}
	return traceql.Format(storequery.Select{Where: e})
}

func serviceIs(name string) tracestore.Expr {
	return tracestore.Cond{Field: tracestore.Field{Place: tracestore.Service}, Op: tracestore.Eq, Value: tracestore.Text(name)}
}
