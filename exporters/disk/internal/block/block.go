package block

import (
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/tracing-backend/tracing/exporters/disk/internal/column"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Pool opens blocks and reuses the memory of closed ones. The zero value is ready to use. A Pool is
// safe for concurrent use.
type Pool struct{ free sync.Pool }

// Open checks the directory of a block and reads nothing else. l must be the layout with which the
// block was encoded. data is the whole block and must not change until the Block is closed. Errors
// of Open and of the Block's methods are of type *source.DamageError, wrap [ErrCorrupt] or
// column.ErrCorrupt, and name the file and the number of the block.
func (p *Pool) Open(l *Layout, data []byte, file string, number int) (*Block, error) {
	b, ok := p.free.Get().(*Block)
	if !ok {
		b = &Block{decoder: column.NewDecoder()}
	}
	b.pool, b.l, b.data, b.file, b.number = p, l, data, file, number
	b.dir.rows = 0
	if err := b.dir.read(data); err != nil {
		b.dir.rows = 0
		err = b.damage("directory", err)
		b.Close()
		return nil, err
	}
	return b, nil
}

// Block is an open block. It decodes each part when it is first needed. It implements
// [source.Block]. It is not safe for concurrent use.
type Block struct {
	pool     *Pool
	l        *Layout
	data     []byte
	file     string
	number   int
	decoder  *column.Decoder
	dir      directory
	heads    heads
	index    index
	values   values
	expected expectedRows
	columns  []source.BlockColumn // scratch
}

var (
	_ source.Block   = (*Block)(nil)
	_ source.Partial = (*Block)(nil)
)

// Trace is an entry of the trace table of a block. An id has several entries if several tenants use
// it; the tenant of an entry is the tenant of its first row's resource.
type Trace struct {
	ID          otlpdata.TraceID
	First, Rows int32
}

// Len returns the number of rows.
func (b *Block) Len() int { return b.dir.rows }

// Traces returns the trace table in the order of rows: each entry starts where the preceding one
// ends.
func (b *Block) Traces() ([]Trace, error) {
	if err := b.need(haveTraces); err != nil {
		return nil, err
	}
	return b.heads.traces, nil
}

// Shapes returns the shape of each row.
func (b *Block) Shapes() ([]uint32, error) {
	if err := b.need(haveShapes); err != nil {
		return nil, err
	}
	return b.heads.shapes, nil
}

// Resources returns the resource of each row.
func (b *Block) Resources() ([]uint32, error) {
	if err := b.need(needResources); err != nil {
		return nil, err
	}
	return b.heads.resources, nil
}

// Starts returns the start of each row.
func (b *Block) Starts() ([]uint64, error) {
	if err := b.need(needStarts); err != nil {
		return nil, err
	}
	return b.heads.starts, nil
}

// Ends returns the end of each row.
func (b *Block) Ends() ([]uint64, error) {
	if err := b.need(needEnds); err != nil {
		return nil, err
	}
	return b.heads.ends, nil
}

// Head reads the complete head of a row.
func (b *Block) Head(row int, h *rows.Head) error {
	if err := b.need(needHead); err != nil {
		return err
	}
	d := &b.heads
	*h = rows.Head{Shape: d.shapes[row], Resource: d.resources[row], TraceID: d.traces[d.trace[row]].ID, SpanID: d.spanID(int32(row)),
		Start: d.starts[row], End: d.ends[row]}
	switch p := d.parents[row]; {
	case p >= 0:
		h.ParentID = d.spanID(p)
	case p != parentNone:
		h.ParentID = d.explicitID(p)
	}
	return nil
}

// SpanIDs returns the span ids of all rows, 8 bytes each.
func (b *Block) SpanIDs() ([]byte, error) {
	if err := b.need(haveSpans); err != nil {
		return nil, err
	}
	return b.heads.spans, nil
}

// SpanID returns the span id of a row.
func (b *Block) SpanID(row int) (otlpdata.SpanID, error) {
	if err := b.need(haveSpans); err != nil {
		return otlpdata.SpanID{}, err
	}
	return b.heads.spanID(int32(row)), nil
}

// Parents returns for each row the row of its parent: the first row of the trace in the block whose
// span id is the parent id, or a negative number if there is none.
func (b *Block) Parents() ([]int32, error) {
	if err := b.need(needParents); err != nil {
		return nil, err
	}
	return b.heads.parents, nil
}

// HasParent reports whether a row has a parent id.
func (b *Block) HasParent(row int) (bool, error) {
	if err := b.need(needParents); err != nil {
		return false, err
	}
	return b.heads.parents[row] != parentNone, nil
}

// IsOwnParent reports whether the parent id of a row equals its own span id.
func (b *Block) IsOwnParent(row int) (bool, error) {
	if err := b.need(needParents | haveSpans); err != nil {
		return false, err
	}
	h := &b.heads
	switch p := h.parents[row]; {
	case p >= 0:
		return h.spanID(p) == h.spanID(int32(row)), nil
	case p != parentNone:
		return h.explicitID(p) == h.spanID(int32(row)), nil
	}
	return false, nil
}

// TraceID returns the trace id of a row.
func (b *Block) TraceID(row int) (otlpdata.TraceID, error) {
	if err := b.need(haveTraces); err != nil {
		return otlpdata.TraceID{}, err
	}
	return b.heads.traces[b.heads.trace[row]].ID, nil
}

// Cell returns the cell at a position of the row's Shape.Columns.
func (b *Block) Cell(row, position int) (rows.Cell, error) {
	if err := b.need(needCell); err != nil {
		return rows.Cell{}, err
	}
	shape := b.heads.shapes[row]
	return b.cell(row, shape, b.l.slotsOf(shape)[position])
}

// Cells appends all cells of a row in the order of its Shape.Columns.
func (b *Block) Cells(dst []rows.Cell, row int) ([]rows.Cell, error) {
	if err := b.need(needCells); err != nil {
		return dst, err
	}
	shape := b.heads.shapes[row]
	for _, s := range b.l.slotsOf(shape) {
		c, err := b.cell(row, shape, s)
		if err != nil {
			return dst, err
		}
		dst = append(dst, c)
	}
	return dst, nil
}

// Close releases the memory of the block for reuse. Strings of cells stay valid, all other results
// do not.
func (b *Block) Close() {
	p := b.pool
	if p == nil {
		return
	}
	b.pool, b.l, b.data = nil, nil, nil
	b.heads.have, b.heads.failed = 0, 0
	b.index.reset()
	b.values.reset()
	b.expected.reset()
	if b.values.capacity() <= maxPooledCells {
		p.free.Put(b)
	}
}

// part returns the bytes of a part after it has verified their checksum.
func (b *Block) part(e entry) ([]byte, error) {
	p := b.data[e.from : e.from+e.length]
	if crc32.Checksum(p, castagnoli) != e.crc {
		return nil, corrupt("checksum mismatch")
	}
	return p, nil
}

func (b *Block) damage(part string, err error) error {
	return &source.DamageError{File: b.file, Part: fmt.Sprintf("block %d", b.number), Rows: b.dir.rows, Err: fmt.Errorf("%s: %w", part, err)}
}
