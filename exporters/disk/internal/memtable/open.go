package memtable

import (
	"fmt"
	"sync"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// openBlock reads the rows of a block. It decodes all heads when they are first needed, and cells
// row by row.
type openBlock struct {
	s     *snapshot
	first int // first row of the block
	rows  int

	parsed            bool
	shapes, resources []uint32
	starts, ends      []uint64

	current int // row of head and cells, -1 for none
	head    rows.Head
	cells   []rows.Cell // the first cells of the current row
	more    []byte      // encoded cells that follow
}

var _ source.Block = (*openBlock)(nil)

// closedBlocks are reused by all tables. A pool in a table would keep the table in memory until the
// second garbage collection after its last use.
var closedBlocks = sync.Pool{New: func() any { return new(openBlock) }}

func (s *snapshot) openBlock(block int) *openBlock {
	b := closedBlocks.Get().(*openBlock)
	b.s, b.first, b.rows = s, block*s.size, s.infos[block].Rows
	b.parsed, b.current = false, -1
	return b
}

// Close releases the memory of the block for reuse.
func (b *openBlock) Close() {
	if b.s == nil {
		return
	}
	clear(b.cells[:cap(b.cells)])
	b.s, b.more = nil, nil
	closedBlocks.Put(b)
}

// Len returns the number of rows.
func (b *openBlock) Len() int { return b.rows }

// Shapes returns the shapes of all rows.
func (b *openBlock) Shapes() ([]uint32, error) {
	err := b.parse()
	return b.shapes, err
}

// Resources returns the resources of all rows.
func (b *openBlock) Resources() ([]uint32, error) {
	err := b.parse()
	return b.resources, err
}

// Starts returns the start times of all rows.
func (b *openBlock) Starts() ([]uint64, error) {
	err := b.parse()
	return b.starts, err
}

// Ends returns the end times of all rows.
func (b *openBlock) Ends() ([]uint64, error) {
	err := b.parse()
	return b.ends, err
}

// parse decodes all heads.
func (b *openBlock) parse() error {
	if b.parsed {
		return nil
	}
	b.shapes, b.resources, b.starts, b.ends = b.shapes[:0], b.resources[:0], b.starts[:0], b.ends[:0]
	var h rows.Head
	for i := range b.rows {
		if err := b.Head(i, &h); err != nil {
			return err
		}
		b.shapes, b.resources = append(b.shapes, h.Shape), append(b.resources, h.Resource)
		b.starts, b.ends = append(b.starts, h.Start), append(b.ends, h.End)
	}
	b.parsed = true
	return nil
}

// Head decodes the head of a row.
func (b *openBlock) Head(row int, h *rows.Head) error {
	if _, err := rows.ReadHead(b.s.row(b.first+row), h); err != nil {
		return b.wrapError(row, err)
	}
	return nil
}

// HasParent reports whether a row has a parent id.
func (b *openBlock) HasParent(row int) (bool, error) {
	var h rows.Head
	err := b.Head(row, &h)
	return !h.ParentID.IsZero(), err
}

// Cell returns a cell. It decodes the preceding cells of the row, but not the following ones.
func (b *openBlock) Cell(row, position int) (rows.Cell, error) {
	if err := b.read(row, position+1); err != nil {
		return rows.Cell{}, err
	}
	return b.cells[position], nil
}

// Cells appends the cells of a row.
func (b *openBlock) Cells(dst []rows.Cell, row int) ([]rows.Cell, error) {
	if err := b.read(row, -1); err != nil {
		return dst, err
	}
	return append(dst, b.cells...), nil
}

// read makes row the current row and decodes its first n cells, or all cells if n is negative.
func (b *openBlock) read(row, n int) error {
	if b.current != row {
		b.current, b.cells = -1, b.cells[:0]
		var err error
		if b.more, err = rows.ReadHead(b.s.row(b.first+row), &b.head); err != nil {
			return b.wrapError(row, err)
		}
		b.current = row
	}
	t := b.s.tables
	if int(b.head.Shape) >= len(t.Shapes) {
		return b.wrapError(row, fmt.Errorf("%w: row refers to undefined shape %d", rows.ErrCorrupt, b.head.Shape))
	}
	columns := t.Shapes[b.head.Shape].Columns
	if n < 0 {
		n = len(columns)
	}
	if n > len(columns) {
		return b.wrapError(row, fmt.Errorf("%w: shape has no column at position %d", rows.ErrCorrupt, n-1))
	}
	if n <= len(b.cells) {
		return nil
	}
	var err error
	if b.cells, b.more, err = t.ReadFirstCells(b.more, columns[len(b.cells):n], b.cells); err != nil {
		b.current = -1
		return b.wrapError(row, err)
	}
	return nil
}

func (b *openBlock) wrapError(row int, err error) error {
	return fmt.Errorf("reading row %d of %s: %w", b.first+row, b.s.name, err)
}
