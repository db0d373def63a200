package memtable

import (
	"slices"
	"unsafe"
)

// slot is a column of a shape, with the last word that was used there: 1 + word, 0 for none.
type slot struct{ column, word uint32 }

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
	t.otherBytes += int64(cap(t.slots)-before) * slotBytesOfShape
}
