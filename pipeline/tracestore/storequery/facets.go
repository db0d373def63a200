package storequery

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Limits of a FacetCounter.
const (
	// MaxFacetDistinct is the maximum number of distinct values of a field. Further values count as
	// Facet.Other.
	MaxFacetDistinct = 10_000
	// MaxFacetText is the maximum length of a value in bytes; see FacetText. Values are equal if
	// their FacetText is.
	MaxFacetText = 256
	// MaxFacetKeys is the maximum number of attribute keys that are counted if the query names no
	// fields. Further keys are not counted.
	MaxFacetKeys = 10_000
	// MaxFacetMemory is the approximate size in bytes of all keys and values. Further keys are not
	// counted, and further values count as Facet.Other.
	MaxFacetMemory = 64 << 20
)

// FacetText returns a text cut to at most MaxFacetText bytes, between characters.
func FacetText(s string) string {
	if len(s) <= MaxFacetText {
		return s
	}
	for end := MaxFacetText; end > MaxFacetText-utf8.UTFMax; end-- {
		if utf8.RuneStart(s[end]) {
			return s[:end]
		}
	}
	return s[:MaxFacetText] // not UTF-8
}

// FacetValues yields an array and its elements, which facets count like several values of a field.
func FacetValues(array otlpdata.Value) iter.Seq[otlpdata.Value] {
	return func(yield func(otlpdata.Value) bool) {
		if yield(array) {
			array.ElementsInJSON()(yield)
		}
	}
}

// FacetScore returns the score of a value: its frequency among the selected spans minus its
// frequency among the others, from -1 to 1. It returns 0 if no spans or all spans are selected. Of
// all spans, count have the value and allSelected are selected; of the selected spans, selected
// have the value.
func FacetScore(count, selected, all, allSelected uint64) float64 {
	if allSelected == 0 || allSelected >= all {
		return 0
	}
	return float64(selected)/float64(allSelected) - float64(count-selected)/float64(all-allSelected)
}

// FacetCounter counts the values of fields within the limits above. Callers either add spans with
// AddSpan, or count elsewhere and add the counts with AddTotal, AddAttributes and Field. Not safe
// for concurrent use.
type FacetCounter struct {
	query           tracestore.FacetQuery
	spans, selected uint64
	fields          []*FieldCounter // fields of the query, or the default fields
	index           map[tracestore.Field]*FieldCounter
	memory          int
	limit           int                // of memory
	account         *tracestore.Memory // see ChargeTo
	short           bool               // see OutOfMemory
	text            []byte             // scratch
	slab            []valueCount       // for further values
	texts           *strings.Builder   // the last texts
	round           uint64             // number of calls of begin
	// current is the number of spans of this round.
	current struct{ spans, selected uint64 }
	// yield counts a value of field. It is allocated once.
	yield func(otlpdata.Value) bool
	field *FieldCounter
}

// FieldCounter counts the values of one field.
type FieldCounter struct {
	counter         *FacetCounter
	field           tracestore.Field
	spans, selected uint64
	last            uint64 // the last round that counted it
	values          map[string]*valueCount
	other           uint64
	distinct        int  // minimum number of distinct values, see Append
	skipped         bool // see Skip
}

// valueCount counts one value. last is as in FieldCounter.
type valueCount struct {
	text                  string
	count, selected, last uint64
}

// NewFacetCounter returns a FacetCounter for a query that is valid according to Aggregation.Check.
func NewFacetCounter(q tracestore.FacetQuery) *FacetCounter {
	c := &FacetCounter{query: q, limit: MaxFacetMemory, texts: new(strings.Builder), index: make(map[tracestore.Field]*FieldCounter)}
	c.yield = func(v otlpdata.Value) bool {
		c.value(c.field, v)
		return true
	}
	for _, f := range q.Fields {
		c.add(f)
	}
	if len(q.Fields) == 0 {
		for _, f := range tracestore.DefaultFacets() {
			c.add(f)
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
			break // attribute keys, which come after the properties
		}
		c.field.field.Values(s)(c.yield)
	}
	if len(c.query.Fields) == 0 {
		c.keys(tracestore.SpanAttribute, s.Attributes)
		c.keys(tracestore.ResourceAttribute, s.Resource.Attributes)
	}
}

// AddAttributes counts attributes that several spans, some of them selected, have in common. Values
// with the same FacetText count once.
func (c *FacetCounter) AddAttributes(p tracestore.Place, kvs []otlpdata.KeyValue, spans, selected uint64) {
	c.begin(spans, selected)
	c.keys(p, kvs)
}

// begin starts a round for a number of spans. Each value counts once per round.
func (c *FacetCounter) begin(spans, selected uint64) {
	c.round++
	c.current.spans, c.current.selected = spans, selected
}

// one returns 1 if b is true and 0 otherwise.
func one(b bool) uint64 {
	if b {
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

// value counts a value of the current spans, and its elements if it is an array.
func (c *FacetCounter) value(f *FieldCounter, v otlpdata.Value) {
	if f.last != c.round {
		f.last = c.round
		f.AddSpans(c.current.spans, c.current.selected)
	}
	if v.Kind() != otlpdata.ValueArray {
		c.countOnce(f, v)
		return
	}
	for v := range FacetValues(v) {
		c.countOnce(f, v)
	}
}

// countOnce counts a value of the current spans, unless this round has counted it already.
func (c *FacetCounter) countOnce(f *FieldCounter, v otlpdata.Value) {
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
		f.other += c.current.spans
	case n.last != c.round:
		n.last = c.round
		n.count += c.current.spans
		n.selected += c.current.selected
	}
}

// Merge adds the counts of another counter of the same query.
func (c *FacetCounter) Merge(o *FacetCounter) {
	c.AddTotal(o.spans, o.selected)
	c.short = c.short || o.short
	for _, of := range o.fields {
		f := c.Field(of.field)
		if f == nil {
			continue
		}
		f.AddSpans(of.spans, of.selected)
		f.other += of.other
		f.distinct = max(f.distinct, of.distinct)
		f.skipped = f.skipped || of.skipped
		for _, v := range of.sorted() {
			f.AddValue(v.text, v.count, v.selected)
		}
	}
}

// Append appends the counts to dst in a form that Add reads. For a field with uncounted values, it
// appends only the given number of values, in the order of a result, and counts the rest as other
// values; if the query requests all values, it appends all. The fields must have no
// [tracestore.Field.Names].
func (c *FacetCounter) Append(dst []byte, values int) []byte {
	dst = appendNumbers(dst, one(c.short), c.spans, c.selected)
	for _, f := range c.fields {
		if f.spans+f.other+uint64(len(f.values)) == 0 {
			continue
		}
		most := values
		if f.other == 0 {
			most = len(f.values)
		}
		a := f.answer(most)
		for _, v := range f.values {
			a.Other += v.count
		}
		for i := range a.Values {
			a.Other -= a.Values[i].Count
		}
		dst = appendText(appendNumbers(dst, uint64(f.field.Place)), f.field.Key)
		dst = appendNumbers(dst, f.spans, f.selected, a.Other, uint64(a.Distinct), one(f.skipped), uint64(len(a.Values)))
		for i := range a.Values {
			v := &a.Values[i]
			dst = appendNumbers(appendText(dst, v.Text), v.Count, v.Selected)
		}
	}
	return dst
}

// Add counts what Append has appended.
func (c *FacetCounter) Add(kept string) {
	r := keptReader{kept}
	c.short = r.number() == 1 || c.short
	c.AddTotal(r.number(), r.number())
	for len(r.rest) > 0 {
		f := c.Field(tracestore.Field{Place: tracestore.Place(r.number()), Key: r.text()})
		if f == nil { // a limit is reached
			f = &FieldCounter{counter: new(FacetCounter)}
		}
		f.AddSpans(r.number(), r.number())
		f.AddOther(r.number())
		f.distinct = max(f.distinct, int(r.number()))
		f.skipped = r.number() == 1 || f.skipped
		for range r.number() {
			f.AddValue(r.text(), r.number(), r.number())
		}
	}
}

// sorted returns the values, the most frequent first, so that the order of a map does not determine
// which of them are counted individually.
func (f *FieldCounter) sorted() []*valueCount {
	return slices.SortedFunc(maps.Values(f.values), func(a, b *valueCount) int {
		return cmp.Or(cmp.Compare(b.count, a.count), strings.Compare(a.text, b.text))
	})
}

// AddTotal counts a number of spans, some of them selected, without their fields.
func (c *FacetCounter) AddTotal(spans, selected uint64) {
	c.spans += spans
	c.selected += selected
}

// Field returns the counter of a field, or nil if the field is not counted. If the query names no
// fields, properties and keys of span and resource attributes are counted.
func (c *FacetCounter) Field(f tracestore.Field) *FieldCounter {
	n := c.index[f]
	switch {
	case n != nil:
		return n
	case len(c.query.Fields) > 0 || f.Key == otlpdata.FlagsAttribute ||
		f.Place != tracestore.SpanAttribute && f.Place != tracestore.ResourceAttribute:
		return nil
	case len(c.fields)-len(tracestore.DefaultFacets()) >= MaxFacetKeys || !c.reserve(2*valueOverhead+len(f.Key)):
		return nil
	}
	return c.add(f)
}

// valueOverhead is the memory of a value in addition to its text: a valueCount of 48 bytes and a
// slot of a map, which is at least half full.
const valueOverhead = 100

// ChargeTo charges the counter's memory to a query, which releases it. Values that do not fit count
// as Facet.Other.
func (c *FacetCounter) ChargeTo(m *tracestore.Memory) { c.account = m }

// OutOfMemory reports whether values or keys were not counted because the memory for all queries
// was exhausted.
func (c *FacetCounter) OutOfMemory() bool { return c.short }

// ReasonFacetMemory is the reason of a result after OutOfMemory.
var ReasonFacetMemory = tracestore.Reason{Kind: tracestore.ReasonLimit,
	Text: "not all values were counted, because other queries use up service.limits.query_memory"}

// DivideMemory divides MaxFacetMemory among a number of counters of the same query.
func (c *FacetCounter) DivideMemory(counters int) { c.limit = MaxFacetMemory / counters }

// reserve adds to the memory in use. It returns false and changes nothing if that would exceed the
// limit or the memory for all queries.
func (c *FacetCounter) reserve(bytes int) bool {
	if c.memory+bytes > c.limit {
		return false
	}
	if c.account.Grow(int64(bytes)) != nil {
		c.short = true
		return false
	}
	c.memory += bytes
	return true
}

// Expect allocates space for a number of values if none were added yet.
func (f *FieldCounter) Expect(values int) {
	if len(f.values) == 0 {
		f.values = make(map[string]*valueCount, min(values, MaxFacetDistinct))
	}
}

// AddSpans counts a number of spans, some of them selected, that have the field. AddValue counts
// the values.
func (f *FieldCounter) AddSpans(spans, selected uint64) {
	f.spans += spans
	f.selected += selected
}

// AddValue counts a number of spans, some of them selected, that have a value. It does not retain
// the text. It returns false if a limit is reached, and the spans count as Facet.Other.
func (f *FieldCounter) AddValue(text string, spans, selected uint64) bool {
	text = FacetText(text)
	n := f.values[text]
	if n == nil {
		if n = f.newValue(text); n == nil {
			f.other += spans
			return false
		}
	}
	n.count += spans
	n.selected += selected
	return true
}

// AddSelected counts selected spans among the spans of a value that AddValue has counted.
func (f *FieldCounter) AddSelected(text string, selected uint64) {
	if n := f.values[FacetText(text)]; n != nil {
		n.selected += selected
	}
}

// AddOther counts spans with further values, which are not counted individually.
func (f *FieldCounter) AddOther(spans uint64) { f.other += spans }

// Values are allocated together, for textLength bytes of text each.
const valuesAtOnce, textLength = 64, 16

// Skip says that AddOther counts values although MaxFacetDistinct is not reached.
func (f *FieldCounter) Skip() { f.skipped = true }

// Incomplete reports whether values of a field were skipped although the field has not reached
// MaxFacetDistinct.
func (c *FacetCounter) Incomplete() bool {
	return slices.ContainsFunc(c.fields, func(f *FieldCounter) bool {
		return f.skipped && max(len(f.values), f.distinct) < MaxFacetDistinct
	})
}

// newValue adds a value. It returns nil if a limit is reached.
func (f *FieldCounter) newValue(text string) *valueCount {
	if len(f.values) >= MaxFacetDistinct || !f.counter.reserve(valueOverhead+len(text)) {
		return nil
	}
	c := f.counter
	if len(c.slab) == 0 {
		c.slab = make([]valueCount, valuesAtOnce)
	}
	if c.texts.Cap()-c.texts.Len() < len(text) {
		c.texts = new(strings.Builder)
		c.texts.Grow(max(valuesAtOnce*textLength, len(text)))
	}
	n := &c.slab[0]
	c.slab = c.slab[1:]
	c.texts.WriteString(text)
	n.text = c.texts.String()[c.texts.Len()-len(text):]
	f.values[n.text] = n
	return n
}

// Answer returns the facets for the examined share of the spans; see Heatmap.Share.
func (c *FacetCounter) Answer(share float64) *tracestore.Facets {
	out := &tracestore.Facets{Spans: c.spans, Selected: c.selected, Share: share}
	fields, omitted := c.answered()
	out.Omitted = omitted
	for _, f := range fields {
		out.Facets = append(out.Facets, f.answer(c.query.Values))
	}
	if len(c.query.Fields) == 0 && !c.query.All {
		SortFacets(out.Facets)
	}
	return out
}

// SortFacets sorts facets of a query that names no fields.
func SortFacets(facets []tracestore.Facet) {
	slices.SortFunc(facets, func(a, b tracestore.Facet) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.Spans, a.Spans), compareFields(a.Field, b.Field))
	})
}

// answered returns the fields of the result, and the number of omitted fields.
func (c *FacetCounter) answered() (fields []*FieldCounter, omitted int) {
	if len(c.query.Fields) > 0 {
		return c.fields, 0
	}
	if c.query.All {
		return slices.DeleteFunc(slices.Clone(c.fields), func(f *FieldCounter) bool { return f.spans == 0 }), 0
	}
	own := len(tracestore.DefaultFacets())
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

// answer returns the values of the field. Unless the query requests all, most limits their number.
func (f *FieldCounter) answer(most int) tracestore.Facet {
	c := f.counter
	out := tracestore.Facet{Field: f.field, Spans: f.spans, Selected: f.selected,
		Distinct: max(len(f.values), f.distinct), Other: f.other}
	if c.query.All {
		for text, n := range f.values {
			out.Values = append(out.Values, tracestore.FacetValue{Text: text, Count: n.count, Selected: n.selected})
		}
		return out
	}
	var best bestValues
	for text, n := range f.values {
		score := FacetScore(n.count, n.selected, c.spans, c.selected)
		v := tracestore.FacetValue{Text: text, Count: n.count, Selected: n.selected, Score: score}
		out.Score = max(out.Score, math.Abs(v.Score))
		best.add(v, most)
	}
	out.Values = best.cut(most)
	return out
}

// bestValues collects the best of many values without sorting all of them. It temporarily holds
// some others too.
type bestValues struct {
	list []tracestore.FacetValue
	// worst is the value that added values must precede, or nil.
	worst *tracestore.FacetValue
}

func (b *bestValues) add(v tracestore.FacetValue, want int) {
	if b.worst != nil && CompareFacetValues(v, *b.worst) > 0 {
		return
	}
	if b.list = append(b.list, v); len(b.list) >= 2*want+16 {
		b.list = b.cut(want)
		worst := b.list[len(b.list)-1]
		b.worst = &worst
	}
}

func (b *bestValues) cut(want int) []tracestore.FacetValue {
	slices.SortFunc(b.list, CompareFacetValues)
	return b.list[:min(want, len(b.list))]
}

// CompareFacetValues orders values as [tracestore.Facet.Values] says.
func CompareFacetValues(a, b tracestore.FacetValue) int {
	return cmp.Or(cmp.Compare(math.Abs(b.Score), math.Abs(a.Score)), cmp.Compare(b.Score, a.Score), cmp.Compare(b.Count, a.Count),
		strings.Compare(a.Text, b.Text))
}
