package aggregate

import (
	"math"
	"math/rand/v2"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// facetColumn counts the values of a column.
type facetColumn struct {
	known bool        // the following fields are set
	extra bool        // its cells have several attributes
	field *facetField // nil: not counted
	kind  otlpdata.ValueKind
	coded bool     // all cells are words, except for constants
	spans counts   // with a value in the column
	words []counts // by word
	// numbers are the numbers of the field with this kind; nil if the kind is not numeric.
	numbers *numbers
}

// skip counts the cells of spans as other values if their values are not needed.
func (c *facetColumn) skip(spans int) bool {
	if c.coded || !c.field.ids {
		return false
	}
	c.field.counter.AddOther(uint64(spans))
	return true
}

// column returns what to count for a column.
func (f *facetSource) column(id uint32) *facetColumn {
	c := &f.columns[id]
	if c.known {
		return c
	}
	col := &f.plan.Tables.Columns[id]
	c.known, c.kind = true, col.Kind
	if c.kind == otlpdata.ValueString {
		_, c.coded = f.plan.Source.Words(id)
	}
	switch col.Place {
	case rows.Extra:
		c.extra = true
	case rows.Attribute:
		c.field = f.to.field(tracestore.Field{Place: tracestore.SpanAttribute, Key: col.Key})
	default:
		for i := range tracestore.Places() {
			if at := scan.BindingOf(tracestore.Place(i)); at.InShape && at.Holds(col.Place) {
				c.field = f.to.field(tracestore.Field{Place: tracestore.Place(i)})
			}
		}
	}
	if c.field != nil {
		c.numbers = c.field.numbersOf(c.kind)
	}
	return c
}

// cell counts a cell of n spans.
func (f *facetSource) cell(column uint32, cell rows.Cell, n counts) error {
	if cell.Word == 0 {
		f.value(column, cell, n)
		return nil
	}
	words := f.words(column)
	if int(cell.Word) > len(words) {
		return scan.ErrReference
	}
	words[cell.Word-1].add(n)
	return nil
}

// words returns the counts of the words of a column.
func (f *facetSource) words(column uint32) []counts {
	c := &f.columns[column]
	if c.words == nil {
		c.words = make([]counts, len(f.plan.Tables.Words[column]))
	}
	return c.words
}

// value counts a cell of n spans that is not a word.
func (f *facetSource) value(column uint32, cell rows.Cell, n counts) {
	c := &f.columns[column]
	switch {
	case c.numbers != nil:
		f.to.number(c, cell.Num, n)
	case c.kind == otlpdata.ValueArray:
		f.texts(column, cell, func(text string) { c.field.note(c.field.counter.AddValue(text, n.all, n.selected)) })
	default:
		c.field.note(c.field.counter.AddValue(f.text(column, cell), n.all, n.selected))
	}
}

// selectedValue counts a span as selected. Its cell was already counted by the method value.
func (f *facetSource) selectedValue(column uint32, cell rows.Cell) {
	c := &f.columns[column]
	if c.numbers != nil {
		if n := c.numbers.find(cell.Num); n != nil {
			n.count.selected++
			return
		}
	}
	if c.kind == otlpdata.ValueArray {
		f.texts(column, cell, func(text string) { c.field.counter.AddSelected(text, 1) })
		return
	}
	c.field.counter.AddSelected(f.text(column, cell), 1)
}

// texts calls take with each different text of an array in facets.
func (f *facetSource) texts(column uint32, cell rows.Cell, take func(text string)) {
	if f.taken == nil {
		f.taken = make(map[string]struct{})
	}
	clear(f.taken)
	for v := range storequery.FacetValues(f.plan.Value(column, cell)) {
		text := storequery.FacetText(v.AsString())
		if _, known := f.taken[text]; !known {
			f.taken[text] = struct{}{}
			take(text)
		}
	}
}

// text returns the text of a value in facets.
func (f *facetSource) text(column uint32, cell rows.Cell) string {
	return f.plan.Value(column, cell).AsString()
}

// finishColumn adds the words of a column to the facets.
func (f *facetSource) finishColumn(id uint32) {
	c := &f.columns[id]
	if c.field == nil {
		return
	}
	c.field.counter.AddSpans(c.spans.all, c.spans.selected)
	for word, n := range c.words {
		if n.all > 0 {
			c.field.counter.AddValue(f.text(id, rows.Cell{Word: uint32(word) + 1}), n.all, n.selected)
		}
	}
}

// facetField counts the values of a field other than words.
type facetField struct {
	of           tracestore.Field
	counter      *storequery.FieldCounter
	numbers      []*numbers // one of each kind
	hits, misses int        // see note
	ids          bool       // also
}

// numbersOf returns the numbers of a kind, or nil if its values are not numbers.
func (f *facetField) numbersOf(kind otlpdata.ValueKind) *numbers {
	if kind != otlpdata.ValueInt && kind != otlpdata.ValueDouble && kind != otlpdata.ValueBool {
		return nil
	}
	for _, n := range f.numbers {
		if n.kind == kind {
			return n
		}
	}
	n := &numbers{kind: kind}
	f.numbers = append(f.numbers, n)
	return n
}

// field returns what to count for a field, or nil if it is not counted.
func (t *facetTotal) field(of tracestore.Field) *facetField {
	counter := t.counter.Field(of)
	if counter == nil {
		return nil
	}
	f := t.index[counter]
	if f == nil {
		f = &facetField{of: of, counter: counter, ids: t.ids[of]}
		if f.ids {
			counter.Skip()
		}
		t.fields, t.index[counter] = append(t.fields, f), f
	}
	return f
}

// A field holds ids if at most 1/idHits of its values were counted individually while idMisses
// others were not.
const (
	idMisses = 4096
	idHits   = 100
)

// note records whether a value was counted individually. After storequery.MaxFacetDistinct values,
// new ones are not. If almost none are, as with ids, note sets ids, and further values need not be
// read.
func (f *facetField) note(counted bool) {
	if counted {
		f.hits++
		return
	}
	if f.misses == 0 {
		f.hits = 0
	}
	if f.misses++; f.misses == idMisses {
		f.ids = f.hits < idMisses/idHits
		f.misses = 0
	}
}

// Limits on the numbers that are counted before they become texts. Memory is reserved for
// numberStep numbers at a time.
const (
	maxNumbers   = 1 << 16
	numberStep   = 1 << 12
	numberMemory = 56 // approximate size in bytes of a number in a table
)

// number counts a number of n spans.
func (t *facetTotal) number(c *facetColumn, num uint64, n counts) {
	if known := c.numbers.find(num); known != nil {
		known.count.add(n)
		c.field.note(true)
		return
	}
	if len(c.numbers.list) == storequery.MaxFacetDistinct {
		c.field.counter.AddOther(n.all)
		c.field.note(false)
		return
	}
	if t.numbers >= t.reserved && !t.reserveNumbers() {
		t.finishNumbers()
	}
	t.numbers++
	c.numbers.add(num, n)
}

// reserveNumbers reserves memory for further numbers.
func (t *facetTotal) reserveNumbers() bool {
	if t.reserved == maxNumbers || t.memory.Grow(numberStep*numberMemory) != nil {
		return false
	}
	t.reserved += numberStep
	return true
}

// finishNumbers adds all numbers to the facets.
func (t *facetTotal) finishNumbers() {
	for _, f := range t.fields {
		for _, list := range f.numbers {
			for i := range list.list {
				n := &list.list[i]
				f.counter.AddValue(numberText(list.kind, n.num), n.count.all, n.count.selected)
			}
			list.reset()
		}
	}
	t.numbers = 0
}

// numberText returns the text of a number in facets.
func numberText(kind otlpdata.ValueKind, num uint64) string {
	switch kind {
	case otlpdata.ValueBool:
		return otlpdata.BoolValue(num != 0).AsString()
	case otlpdata.ValueInt:
		return otlpdata.IntValue(int64(num)).AsString()
	}
	return otlpdata.DoubleValue(math.Float64frombits(num)).AsString()
}

// numbers is a hash table that keeps numbers in the order of insertion, so that results are
// repeatable.
type numbers struct {
	kind  otlpdata.ValueKind
	list  []numberTally
	slots []uint32 // 1 + index in list, or 0 for a free slot; at least half of the slots are free
	// factor is random and odd, so that clients cannot send numbers that collide.
	factor uint64
}

type numberTally struct {
	num   uint64
	count counts
}

// find returns the count of a number, or nil. It is valid until the next call of add.
func (t *numbers) find(num uint64) *numberTally {
	if len(t.slots) == 0 {
		return nil
	}
	if at := *t.slot(num); at > 0 {
		return &t.list[at-1]
	}
	return nil
}

// add adds a number that find does not find.
func (t *numbers) add(num uint64, n counts) {
	if 2*len(t.list) >= len(t.slots) {
		t.grow()
	}
	t.list = append(t.list, numberTally{num, n})
	*t.slot(num) = uint32(len(t.list))
}

func (t *numbers) slot(num uint64) *uint32 {
	mask := uint64(len(t.slots) - 1)
	for at := (num ^ num>>32) * t.factor >> 32; ; at++ {
		slot := &t.slots[at&mask]
		if *slot == 0 || t.list[*slot-1].num == num {
			return slot
		}
	}
}

func (t *numbers) grow() {
	const least = 16
	if t.factor == 0 {
		t.factor = rand.Uint64() | 1
	}
	t.slots = make([]uint32, max(least, 2*len(t.slots)))
	for i := range t.list {
		*t.slot(t.list[i].num) = uint32(i + 1)
	}
}

func (t *numbers) reset() {
	t.list = t.list[:0]
	clear(t.slots)
}
