package mask

import (
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// block is an open block without its hidden rows.
type block struct {
	source            *Source
	below             source.Block
	left              []int32 // rows of the block below
	shapes, resources []uint32
	starts, ends      []uint64
	expected          []int32
}

var (
	_ source.Block   = (*block)(nil)
	_ source.Partial = (*block)(nil)
)

func (b *block) open(s *Source, below source.Block, m *masked) {
	b.source, b.below, b.left = s, below, b.left[:0]
	if m.bits == nil && m.n > 0 {
		return // all rows are hidden
	}
	for row := range below.Len() {
		if m.bits == nil || !m.has(row) {
			b.left = append(b.left, int32(row))
		}
	}
}

// Close closes the block below, too.
func (b *block) Close() {
	if b.below == nil {
		return
	}
	b.below.Close()
	s := b.source
	b.source, b.below = nil, nil
	s.blocks.Put(b)
}

// Len returns how many rows are left.
func (b *block) Len() int { return len(b.left) }

// Shapes returns the shapes of the rows that are left.
func (b *block) Shapes() (list []uint32, err error) {
	b.shapes, err = pick(b.shapes, b.left, b.below.Shapes)
	return b.shapes, err
}

// Resources returns the resources of the rows that are left.
func (b *block) Resources() (list []uint32, err error) {
	b.resources, err = pick(b.resources, b.left, b.below.Resources)
	return b.resources, err
}

// Starts returns when the spans that are left started.
func (b *block) Starts() (list []uint64, err error) {
	b.starts, err = pick(b.starts, b.left, b.below.Starts)
	return b.starts, err
}

// Ends returns when the spans that are left ended.
func (b *block) Ends() (list []uint64, err error) {
	b.ends, err = pick(b.ends, b.left, b.below.Ends)
	return b.ends, err
}

// pick returns the values of some rows, in the memory of dst.
func pick[T any](dst []T, left []int32, all func() ([]T, error)) ([]T, error) {
	values, err := all()
	if err != nil {
		return dst[:0], err
	}
	dst = dst[:0]
	for _, row := range left {
		dst = append(dst, values[row])
	}
	return dst, nil
}

// Head reads the head of a row that is left.
func (b *block) Head(row int, h *rows.Head) error { return b.below.Head(int(b.left[row]), h) }

// TraceID returns the trace of a row that is left.
func (b *block) TraceID(row int) (otlpdata.TraceID, error) {
	if p, ok := b.below.(source.Partial); ok {
		return p.TraceID(int(b.left[row]))
	}
	var h rows.Head
	err := b.Head(row, &h)
	return h.TraceID, err
}

// Expect says of which rows cells are going to be asked for.
func (b *block) Expect(list []int32) {
	p, ok := b.below.(source.Partial)
	if !ok {
		return
	}
	b.expected = b.expected[:0]
	for _, row := range list {
		b.expected = append(b.expected, b.left[row])
	}
	p.Expect(b.expected)
}

// Cell returns a cell of a row that is left.
func (b *block) Cell(row, position int) (rows.Cell, error) {
	return b.below.Cell(int(b.left[row]), position)
}

// Cells appends the cells of a row that is left.
func (b *block) Cells(dst []rows.Cell, row int) ([]rows.Cell, error) {
	return b.below.Cells(dst, int(b.left[row]))
}
