package tombstone

import (
	"sync"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// block is an open block of a source without its hidden rows.
type block struct {
	inner             source.Block
	visible           []int32 // row numbers in the inner block
	shapes, resources []uint32
	starts, ends      []uint64
	expected          []int32
}

var (
	_ source.Block   = (*block)(nil)
	_ source.Partial = (*block)(nil)
)

// closedBlocks are reused by all filters. A pool in a filter would keep its source in memory until
// the second garbage collection after its last use.
var closedBlocks = sync.Pool{New: func() any { return new(block) }}

func (b *block) open(inner source.Block, hidden *hiddenRows) {
	b.inner, b.visible = inner, b.visible[:0]
	if hidden.bits == nil && hidden.count > 0 {
		return // all rows are hidden
	}
	for row := range inner.Len() {
		if hidden.bits == nil || !hidden.has(row) {
			b.visible = append(b.visible, int32(row))
		}
	}
}

// Close also closes the inner block.
func (b *block) Close() {
	if b.inner == nil {
		return
	}
	b.inner.Close()
	b.inner = nil
	closedBlocks.Put(b)
}

// Len returns the number of visible rows.
func (b *block) Len() int { return len(b.visible) }

// Shapes returns the shapes of the visible rows.
func (b *block) Shapes() ([]uint32, error) { return pick(&b.shapes, b.visible, b.inner.Shapes) }

// Resources returns the resources of the visible rows.
func (b *block) Resources() ([]uint32, error) {
	return pick(&b.resources, b.visible, b.inner.Resources)
}

// Starts returns the start times of the visible rows.
func (b *block) Starts() ([]uint64, error) { return pick(&b.starts, b.visible, b.inner.Starts) }

// Ends returns the end times of the visible rows.
func (b *block) Ends() ([]uint64, error) { return pick(&b.ends, b.visible, b.inner.Ends) }

// pick returns the values of the visible rows, in the memory of dst.
func pick[T any](dst *[]T, visible []int32, all func() ([]T, error)) ([]T, error) {
	values, err := all()
	if err != nil {
		return nil, err
	}
	*dst = (*dst)[:0]
	for _, row := range visible {
		*dst = append(*dst, values[row])
	}
	return *dst, nil
}

// Head reads the head of a visible row.
func (b *block) Head(row int, h *rows.Head) error { return b.inner.Head(int(b.visible[row]), h) }

// HasParent reports whether a visible row has a parent id.
func (b *block) HasParent(row int) (bool, error) { return b.inner.HasParent(int(b.visible[row])) }

// TraceID returns the trace id of a visible row.
func (b *block) TraceID(row int) (otlpdata.TraceID, error) {
	if p, ok := b.inner.(source.Partial); ok {
		return p.TraceID(int(b.visible[row]))
	}
	var h rows.Head
	err := b.Head(row, &h)
	return h.TraceID, err
}

// Expect implements source.Partial.
func (b *block) Expect(list []int32) {
	p, ok := b.inner.(source.Partial)
	if !ok {
		return
	}
	b.expected = b.expected[:0]
	for _, row := range list {
		b.expected = append(b.expected, b.visible[row])
	}
	p.Expect(b.expected)
}

// Cell returns a cell of a visible row.
func (b *block) Cell(row, position int) (rows.Cell, error) {
	return b.inner.Cell(int(b.visible[row]), position)
}

// Cells appends the cells of a visible row.
func (b *block) Cells(dst []rows.Cell, row int) ([]rows.Cell, error) {
	return b.inner.Cells(dst, int(b.visible[row]))
}
