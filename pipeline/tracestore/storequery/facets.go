package storequery

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Bounds of what a FacetCounter holds.
const (
	// MaxFacetDistinct is how many values of a field are counted; those that are met later count as Facet.Other. Values are told apart by
	// FacetText, which is at most MaxFacetText bytes long.
	MaxFacetDistinct = 10_000
	MaxFacetText     = 256
	// MaxFacetKeys is how many keys are counted where no fields were named, and MaxFacetMemory how many bytes all values and keys take
	// together, about. What is met later is not counted, or as Facet.Other.
	MaxFacetKeys   = 10_000
	MaxFacetMemory = 64 << 20
)

// FacetText returns what values are told apart by: a text cut to MaxFacetText bytes, before a character that would be torn apart.
func FacetText(s string) string {
	if len(s) <= MaxFacetText {
		return s
	}
	for end := MaxFacetText; end > MaxFacetText-utf8.UTFMax; end-- {
		if utf8.RuneStart(s[end]) {
			return s[:end]
		}
	}
	return s[:MaxFacetText] // no UTF-8
}

// FacetScore returns the score of a value that count of all spans have, and selected of those that are selected: the share of the selected
// spans that have it less that of the others, from -1 to 1; 0 where one of the two is empty. allSelected is a part of all, as selected is
// of count.
func FacetScore(count, selected, all, allSelected uint64) float64 {
	if allSelected == 0 || allSelected >= all {
		return 0
	}
	return float64(selected)/float64(allSelected) - float64(count-selected)/float64(all-allSelected)
}

// FacetCounter counts the values of fields, within the bounds of this package. A caller shows it the spans; or it counts them elsewhere and
// adds what came out with Total and Field. Not for concurrent use.
type FacetCounter struct {
	query           tracestore.FacetQuery
	spans, selected uint64
	fields          []*FieldCounter // those of the query, or properties and keys
	index           map[tracestore.Field]*FieldCounter
	memory          int
	text            []byte // scratch
	turn            uint64 // counts spans, and attributes that spans have in common
	now             struct{ spans, selected uint64 }
	// What yield counts, which is made once for all spans.
	yield func(otlpdata.Value) bool
	field *FieldCounter
}

// FieldCounter counts the values of one field.
type FieldCounter struct {
	counter         *FacetCounter
	field           tracestore.Field
	spans, selected uint64
	last            uint64 // the turn in which it was counted last
	values          map[string]*valueCount
	other           uint64
}

// valueCount is a value. last is as that of FieldCounter.
type valueCount struct {
	text                  string
	count, selected, last uint64
}

// properties are the fields beside keys that are counted where none are named.
func properties() []tracestore.Place {
	return []tracestore.Place{tracestore.Service, tracestore.Name, tracestore.Kind, tracestore.Status}
}

// NewFacetCounter returns a FacetCounter for a query for which Aggregation.Check has no error.
func NewFacetCounter(q tracestore.FacetQuery) *FacetCounter {
	c := &FacetCounter{query: q, index: make(map[tracestore.Field]*FieldCounter)}
	c.yield = func(v otlpdata.Value) bool {
		c.value(c.field, v)
		return true
	}
	for _, f := range q.Fields {
		c.add(f)
	}
	if len(q.Fields) == 0 {
		for _, p := range properties() {
			c.add(tracestore.Field{Place: p})
		}
	}
	return c
}

func (c *FacetCounter) add(f tracestore.Field) *FieldCounter {
	f.Key = strings.Clone(f.Key)
	n := &FieldCounter{counter: c, field: f, values: make(map[string]*valueCount)}
	c.fields = append(c.fields, n)
	c.index[f] = n
	return n
}

// AddSpan counts a span.
func (c *FacetCounter) AddSpan(s tracestore.Span, selected bool) {
	c.AddTotal(1, one(selected))
	c.begin(1, one(selected))
	for _, c.field = range c.fields {
		if len(c.query.Fields) == 0 && c.field.field.Place <= tracestore.LinkAttribute {
			break // keys, which are behind the properties
		}
		c.field.field.Values(s)(c.yield)
	}
	if len(c.query.Fields) == 0 {
		c.keys(tracestore.SpanAttribute, s.Attributes)
		c.keys(tracestore.ResourceAttribute, s.Resource.Attributes)
	}
}

// AddAttributes counts those that so many spans have in common, of which so many are selected. Their values are cut as they are counted, and
// one that is given twice counts once.
func (c *FacetCounter) AddAttributes(p tracestore.Place, kvs []otlpdata.KeyValue, spans, selected uint64) {
	c.begin(spans, selected)
	c.keys(p, kvs)
}

// begin begins a turn, in which each value counts once.
func (c *FacetCounter) begin(spans, selected uint64) {
	c.turn++
	c.now.spans, c.now.selected = spans, selected
}

func one(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}

func (c *FacetCounter) keys(p tracestore.Place, kvs []otlpdata.KeyValue) {
	for i := range kvs {
		if f := c.Field(tracestore.Field{Place: p, Key: kvs[i].Key}); f != nil {
			c.value(f, kvs[i].Value)
		}
	}
}

// value counts a value of the spans at hand, once.
func (c *FacetCounter) value(f *FieldCounter, v otlpdata.Value) {
	if f.last != c.turn {
		f.last = c.turn
		f.AddSpans(c.now.spans, c.now.selected)
	}
	if v.Kind() == otlpdata.ValueString {
		c.text = append(c.text[:0], FacetText(v.Str())...)
	} else if c.text = v.AppendText(c.text[:0]); len(c.text) > MaxFacetText {
		c.text = []byte(FacetText(string(c.text)))
	}
	n := f.values[string(c.text)]
	if n == nil {
		n = f.newValue(string(c.text))
	}
	switch {
	case n == nil:
		f.other += c.now.spans
	case n.last != c.turn:
		n.last = c.turn
		n.count += c.now.spans
		n.selected += c.now.selected
	}
}

// AddTotal counts so many spans, of which so many are selected, without their fields.
func (c *FacetCounter) AddTotal(spans, selected uint64) {
	c.spans += spans
	c.selected += selected
}

// Field returns the counter of a field: one of the query; where it names none, of a property or a key of span or resource attributes. It
// is nil where the field is not counted.
func (c *FacetCounter) Field(f tracestore.Field) *FieldCounter {
	n := c.index[f]
	switch {
	case n != nil:
		return n
	case len(c.query.Fields) > 0 || f.Place != tracestore.SpanAttribute && f.Place != tracestore.ResourceAttribute || f.Key == otlpdata.FlagsAttribute:
		return nil
	case len(c.fields)-len(properties()) >= MaxFacetKeys || !c.room(2*costOfValue+len(f.Key)):
		return nil
	}
	return c.add(f)
}

// costOfValue is what a value takes beside its text: a valueCount of 48 bytes and its place in a map, which is at least half full.
const costOfValue = 100

// room reports whether so many bytes may be taken, and takes them.
func (c *FacetCounter) room(bytes int) bool {
	if c.memory+bytes > MaxFacetMemory {
		return false
	}
	c.memory += bytes
	return true
}

// AddSpans counts so many spans that have a value of the field, of which so many are selected.
func (f *FieldCounter) AddSpans(spans, selected uint64) {
	f.spans += spans
	f.selected += selected
}

// AddValue counts so many spans that have a value, of which so many are selected. It does not keep the text.
func (f *FieldCounter) AddValue(text string, spans, selected uint64) {
	text = FacetText(text)
	n := f.values[text]
	if n == nil {
		if n = f.newValue(text); n == nil {
			f.other += spans
			return
		}
	}
	n.count += spans
	n.selected += selected
}

// newValue returns nil where there is no room.
func (f *FieldCounter) newValue(text string) *valueCount {
	if len(f.values) >= MaxFacetDistinct || !f.counter.room(costOfValue+len(text)) {
		return nil
	}
	n := &valueCount{text: strings.Clone(text)}
	f.values[n.text] = n
	return n
}

// Answer returns the facets.
func (c *FacetCounter) Answer(share float64) *tracestore.Facets {
	out := &tracestore.Facets{Spans: c.spans, Selected: c.selected, Share: share}
	fields, omitted := c.chosen()
	out.Omitted = omitted
	for _, f := range fields {
		out.Facets = append(out.Facets, f.answer())
	}
	if len(c.query.Fields) == 0 {
		slices.SortFunc(out.Facets, func(a, b tracestore.Facet) int {
			return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Spans, a.Spans), compareFields(a.Field, b.Field))
		})
	}
	return out
}

// chosen returns the fields of the answer, and how many there are beside them.
func (c *FacetCounter) chosen() (fields []*FieldCounter, omitted int) {
	if len(c.query.Fields) > 0 {
		return c.fields, 0
	}
	own := len(properties())
	keys := slices.Clone(c.fields[own:])
	slices.SortFunc(keys, func(a, b *FieldCounter) int {
		return cmp.Or(cmp.Compare(b.spans, a.spans), compareFields(a.field, b.field))
	})
	fields = slices.Concat(c.fields[:own], keys)
	fields = slices.DeleteFunc(fields, func(f *FieldCounter) bool { return f.spans == 0 })
	n := min(len(fields), tracestore.MaxFacets)
	return fields[:n], len(fields) - n
}

func compareFields(a, b tracestore.Field) int {
	return cmp.Or(cmp.Compare(a.Place, b.Place), strings.Compare(a.Key, b.Key))
}

func (f *FieldCounter) answer() tracestore.Facet {
	c := f.counter
	out := tracestore.Facet{Field: f.field, Spans: f.spans, Selected: f.selected, Distinct: len(f.values), Other: f.other}
	var best bestValues
	for text, n := range f.values {
		v := tracestore.FacetValue{Text: text, Count: n.count, Selected: n.selected, Score: FacetScore(n.count, n.selected, c.spans, c.selected)}
		out.Score = max(out.Score, math.Abs(v.Score))
		best.add(v, c.query.Values)
	}
	out.Values = best.cut(c.query.Values)
	return out
}

// bestValues are the first of those that were added, and some more: there may be thousands, of which few are asked for.
type bestValues struct {
	list  []tracestore.FacetValue
	least *tracestore.FacetValue // what those that are added must be before; nil: none
}

func (b *bestValues) add(v tracestore.FacetValue, want int) {
	if b.least != nil && compareFacetValues(v, *b.least) > 0 {
		return
	}
	if b.list = append(b.list, v); len(b.list) >= 2*want+16 {
		b.list = b.cut(want)
		least := b.list[len(b.list)-1]
		b.least = &least
	}
}

func (b *bestValues) cut(want int) []tracestore.FacetValue {
	slices.SortFunc(b.list, compareFacetValues)
	return b.list[:min(want, len(b.list))]
}

func compareFacetValues(a, b tracestore.FacetValue) int {
	return cmp.Or(cmp.Compare(math.Abs(b.Score), math.Abs(a.Score)), cmp.Compare(b.Score, a.Score), cmp.Compare(b.Count, a.Count),
		strings.Compare(a.Text, b.Text))
}
