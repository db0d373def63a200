package aggregate

import (
	"math/rand/v2"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// facetColumn counts the values of a column.
type facetColumn struct {
	known   bool                     // the following fields are set
	extra   bool                     // its cells have several attributes
	counter *storequery.FieldCounter // nil: not counted
	kind    otlpdata.ValueKind
	spans   counts   // with a value in the column
	words   []counts // by word
	numbers numbers
}

// column returns what to count for a column.
func (f *facetSource) column(id uint32) *facetColumn {
	c := &f.columns[id]
	if c.known {
		return c
	}
	col := &f.plan.Tables.Columns[id]
	c.known, c.kind = true, col.Kind
	switch col.Place {
	case rows.Extra:
		c.extra = true
	case rows.Attribute:
		c.counter = f.to.counter.Field(tracestore.Field{Place: tracestore.SpanAttribute, Key: col.Key})
	default:
		for i := range tracestore.Places() {
			if at := scan.BindingOf(tracestore.Place(i)); at.InShape && at.Holds(col.Place) {
				c.counter = f.to.counter.Field(tracestore.Field{Place: tracestore.Place(i)})
			}
		}
	}
	return c
}

// cell counts a cell of n spans.
func (f *facetSource) cell(column uint32, cell rows.Cell, n counts) error {
	c := &f.columns[column]
	switch {
	case cell.Word > 0:
		if c.words == nil {
			c.words = make([]counts, len(f.plan.Tables.Words[column]))
		}
		if int(cell.Word) > len(c.words) {
			return scan.ErrReference
		}
		c.words[cell.Word-1].add(n)
	case c.kind == otlpdata.ValueInt || c.kind == otlpdata.ValueDouble || c.kind == otlpdata.ValueBool:
		f.number(c, cell.Num, n)
	default:
		c.counter.AddValue(f.text(column, cell), n.all, n.selected)
	}
	return nil
}

// number counts a number.
func (f *facetSource) number(c *facetColumn, num uint64, n counts) {
	if !c.numbers.add(num, n) {
		return
	}
	if f.numbersKept++; f.numbersKept > maxNumbers {
		for i := range f.columns {
			f.finishNumbers(uint32(i))
		}
		f.numbersKept = 0
	}
}

// text returns the text of a value in facets.
func (f *facetSource) text(column uint32, cell rows.Cell) string {
	return f.plan.Value(column, cell).AsString()
}

// finishColumn adds the values of a column to the facets.
func (f *facetSource) finishColumn(id uint32) {
	c := &f.columns[id]
	if c.counter == nil {
		return
	}
	c.counter.AddSpans(c.spans.all, c.spans.selected)
	for word, n := range c.words {
		if n.all > 0 {
			c.counter.AddValue(f.text(id, rows.Cell{Word: uint32(word) + 1}), n.all, n.selected)
		}
	}
	f.finishNumbers(id)
}

func (f *facetSource) finishNumbers(id uint32) {
	c := &f.columns[id]
	for i := range c.numbers.list {
		n := &c.numbers.list[i]
		c.counter.AddValue(f.text(id, rows.Cell{Num: n.num}), n.count.all, n.count.selected)
	}
	c.numbers.reset()
}

// numbers is a hash table that keeps numbers in the order of insertion, so that results are
// repeatable.
type numbers struct {
	list  []numberTally
	slots []uint32 // 1 + index in list, or 0 for a free slot; at least half of the slots are free
	// factor is random and odd, so that clients cannot send numbers that collide.
	factor uint64
}

type numberTally struct {
	num   uint64
	count counts
}

// add counts a number and reports whether it is new.
func (t *numbers) add(num uint64, n counts) bool {
	if 2*len(t.list) >= len(t.slots) {
		t.grow()
	}
	slot := t.find(num)
	if *slot > 0 {
		t.list[*slot-1].count.add(n)
		return false
	}
	t.list = append(t.list, numberTally{num, n})
	*slot = uint32(len(t.list))
	return true
}

func (t *numbers) find(num uint64) *uint32 {
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
		*t.find(t.list[i].num) = uint32(i + 1)
	}
}

func (t *numbers) reset() {
	t.list = t.list[:0]
	clear(t.slots)
}
