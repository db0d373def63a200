package block

import (
	"fmt"
	"unsafe"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

var _ source.Vectors = (*Block)(nil)

// Vector implements source.Vectors.
func (b *Block) Vector(shape uint32, position int) (source.Vector, error) {
	if err := b.need(needCells); err != nil {
		return source.Vector{}, err
	}
	group := b.l.slotsOf(shape)[position].group
	if group == constant || b.l.groupsOf(shape)[group].count > 1 {
		return source.Vector{}, fmt.Errorf("shape %d has no vector at position %d", shape, position)
	}
	p := &b.index.places[b.index.firstPlace[shape]+group]
	return b.vector(int(p.vector), int(p.from), int(b.index.count[shape]))
}

// Ranks implements source.Vectors.
func (b *Block) Ranks() ([]int32, error) {
	if err := b.need(needCell); err != nil {
		return nil, err
	}
	return b.index.rank, nil
}

// Columns implements source.Vectors.
func (b *Block) Columns() ([]source.BlockColumn, error) {
	if err := b.need(needCells); err != nil {
		return nil, err
	}
	b.columns = b.columns[:0]
	for i := range b.index.vectors {
		v := &b.index.vectors[i]
		b.columns = append(b.columns, source.BlockColumn{ID: v.column, Cells: v.n})
	}
	return b.columns, nil
}

// Column implements source.Vectors.
func (b *Block) Column(id uint32) (source.Vector, error) {
	if err := b.need(needCells); err != nil {
		return source.Vector{}, err
	}
	at := int(b.index.entries[id]) - 1
	return b.vector(at, 0, b.index.vectors[at].n)
}

// vector returns n cells of a column of the directory.
func (b *Block) vector(at, first, n int) (list source.Vector, _ error) {
	v := &b.index.vectors[at]
	if err := b.needVector(at, v); err != nil {
		return list, err
	}
	from := v.from + first
	to := from + n
	switch v.encoding {
	case encodeWord:
		list.Words = b.values.words[from:to]
	case encodeInt:
		list.Numbers = bitsOf(b.values.ints[from:to])
	case encodeDouble:
		list.Numbers = bitsOf(b.values.doubles[from:to])
	case encodeBool:
		list.Bools = b.values.bools[from:to]
	default:
		list.Texts = b.values.texts[from:to]
	}
	return list, nil
}

// bitsOf returns the bits of numbers, in the same memory.
func bitsOf[T int64 | float64](v []T) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}
