package memtable

import (
	"slices"
	"unsafe"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// slot is a column of a shape with what was last met there.
type slot struct {
	// value is, of a string column, 1 + the word of the last text that was a word, 0 if none was; of a bool, an int or a double, Cell.Num
	// of the first row.
	value  uint64
	column uint32
	state  slotState
}

// slotState is what is known of the cells that all rows of a shape have at a position.
type slotState uint8

const (
	noCells   slotState = iota
	oneWord             // they are one word, slot.value
	oneNumber           // they are one number, slot.value
	cellsVary           // or nobody compared them
)

const slotBytesOfShape = int64(unsafe.Sizeof(slot{}))

func (t *Table) slotsOf(shape uint32) []slot {
	info := &t.shapes[shape]
	return t.slots[info.slots : info.slots+info.columns]
}

func (t *Table) addSlots(info *shapeInfo, columns []uint32) {
	info.slots, info.columns = uint32(len(t.slots)), uint32(len(columns))
	before := cap(t.slots)
	if before-len(t.slots) < len(columns) {
		t.slots = slices.Grow(t.slots, max(len(t.slots), len(columns)))
	}
	for _, c := range columns {
		t.slots = append(t.slots, slot{column: c})
	}
	t.grown += int64(cap(t.slots)-before) * slotBytesOfShape
}

// word notes a text that is a word, given as 1 + its number. The word that is slot.value already need not be noted.
func (s *slot) word(w uint32) {
	switch {
	case s.state == noCells:
		s.state = oneWord
	case s.value != uint64(w):
		s.state = cellsVary
	}
	s.value = uint64(w)
}

// number notes a cell of a bool, an int or a double.
func (s *slot) number(v uint64) {
	switch {
	case s.state == noCells:
		s.value, s.state = v, oneNumber
	case s.value != v:
		s.state = cellsVary
	}
}

// cell notes a cell of any kind.
func (s *slot) cell(kind otlpdata.ValueKind, c rows.Cell) {
	switch kind {
	case otlpdata.ValueBool, otlpdata.ValueInt, otlpdata.ValueDouble:
		s.number(c.Num)
		return
	case otlpdata.ValueString:
		if c.Word > 0 {
			s.word(c.Word)
			return
		}
	}
	s.state = cellsVary
}

// Constants knows which cells all rows of a shape have in common. Safe for concurrent use.
type Constants struct {
	slots []slot
	first []uint32 // by shape
}

// Constants returns what is known of the rows that are visible now.
func (t *Table) Constants() *Constants {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := &Constants{slots: slices.Clone(t.slots), first: make([]uint32, len(t.shapes))}
	for i := range t.shapes {
		c.first[i] = t.shapes[i].slots
	}
	return c
}

// Of returns the cell that all rows of a shape have at a position of its columns, if interning found them to be one word, bool, int or
// double. It errs on the safe side, and knows nothing of shapes that were lost.
func (c *Constants) Of(shape uint32, position int) (rows.Cell, bool) {
	switch s := &c.slots[int(c.first[shape])+position]; s.state {
	case oneWord:
		return rows.Cell{Word: uint32(s.value)}, true
	case oneNumber:
		return rows.Cell{Num: s.value}, true
	}
	return rows.Cell{}, false
}
