// Package source is the contract between the parts of the span store that hold spans (memtables and
// segments) and the queries that read them.
package source

import (
	"context"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Source is a set of spans with one vocabulary, divided into blocks: a memtable or a segment. It
// does not change while it is part of a view. It is safe for concurrent use.
//
// A source may implement further interfaces: [Traces], [SelectiveTrace], [Statistics], [Tally],
// [Clusters], [Catalog], [Services].
type Source interface {
	// Name identifies the source in messages.
	Name() string
	// Bounds returns the number of rows and the range of their start times, both inclusive. It
	// reads nothing.
	Bounds() (rows int, minStart, maxStart uint64)
	// Tables returns the vocabulary of all rows. It reads the vocabulary from disk if it is not in
	// memory.
	Tables() (*rows.Tables, error)
	// Blocks describes the blocks. The caller must not modify the list.
	Blocks() ([]BlockInfo, error)
	// Open decodes the parts that all readers of a block need. Columns are decoded when they are
	// first read. The caller closes the block.
	Open(ctx context.Context, block int) (Block, error)
	// Trace calls visit with the rows of a tenant's trace, for each block that has some, in any
	// order. The block is closed when visit returns. An unknown trace is not an error. A damaged
	// block results in a *DamageError; the other blocks are visited, and the errors are joined.
	Trace(ctx context.Context, tenant string, id otlpdata.TraceID, visit func(b Block, rows []int32) error) error
	Hints
}

// Traces is implemented by sources that find several traces together faster than one by one.
type Traces interface {
	// Traces is like Source.Trace for several different traces of a tenant. which is the index in
	// ids of the trace that the rows belong to.
	Traces(ctx context.Context, tenant string, ids []otlpdata.TraceID, visit func(b Block, which int, rows []int32) error) error
}

// SelectiveTrace is implemented by sources that can read a part of a trace without opening the
// other blocks.
type SelectiveTrace interface {
	// TraceIn is like Source.Trace for the blocks for which enter returns true. enter is called for
	// each block that may have rows of the trace, before it is opened, in the order of the trace's
	// start times.
	TraceIn(ctx context.Context, tenant string, id otlpdata.TraceID, enter func(block int) bool, visit func(b Block, rows []int32) error) error
}

// Hints allow queries to skip rows that cannot match. Hints may be imprecise but never wrong: a
// block that has a match is never excluded.
type Hints interface {
	// MayHold reports whether a row of the block may have the key with the string value text, as an
	// attribute of its span, events or links.
	MayHold(block int, key, text string) bool
	// BlockShapes appends the shapes that occur in a block, each once. known is false if they are
	// unknown.
	BlockShapes(dst []BlockShape, block int) (shapes []BlockShape, known bool)
	// HoldsIntegers reports whether MayHold also knows integers, by their decimal text.
	HoldsIntegers() bool
	// HoldsElements reports whether MayHold also knows the elements of arrays, and arrays by their
	// text as a whole.
	HoldsElements() bool
	// Constant returns the cell that all rows of a shape have at an index of Shape.Columns, if it
	// is known to be the same in all.
	Constant(shape uint32, position int) (rows.Cell, bool)
	// Words returns the distinct texts of a string column, except texts that Constant returns.
	// complete is false if there may be others.
	Words(column uint32) (words []string, complete bool)
}

// BlockInfo describes a block without reading it.
type BlockInfo struct {
	Rows               int
	MinStart, MaxStart uint64 // range of the start times, both inclusive
}

// BlockShape describes the rows of a shape in a block.
type BlockShape struct {
	Shape   uint32
	Longest Step // the Head.Duration of each row is at most Longest.End
}

// Block is an open block. Rows are numbered from 0, in any order. Slices that it returns are valid
// until Close and must not be modified. An error matches *DamageError if bytes on disk are damaged.
// A Block is not safe for concurrent use.
type Block interface {
	Len() int
	// Shapes, Resources, Starts and Ends return one field of all heads, and nil with an error.
	Shapes() ([]uint32, error)
	Resources() ([]uint32, error)
	Starts() ([]uint64, error)
	Ends() ([]uint64, error)
	// Head reads the whole head of a row.
	Head(row int, h *rows.Head) error
	// HasParent reports whether a row has a parent id.
	HasParent(row int) (bool, error)
	// Cell returns the cell at an index of the Shape.Columns of the row.
	Cell(row, position int) (rows.Cell, error)
	// Cells appends all cells of a row, as rows.Assembler needs them.
	Cells(dst []rows.Cell, row int) ([]rows.Cell, error)
	Close()
}

// Partial is implemented by blocks that read a part faster than the whole.
type Partial interface {
	// TraceID reads less than Head.
	TraceID(row int) (otlpdata.TraceID, error)
	// Expect announces rows whose cells will be read, in any order. Cells of other rows can still
	// be read, but more slowly.
	Expect(rows []int32)
}

// Vectors is implemented by blocks that hold the cells of a column in lists, which are faster to
// read than single cells.
type Vectors interface {
	// Vector returns the cells that all rows of a shape have at an index of Shape.Columns, which is
	// not constant and whose column does not repeat. It is valid until the next call. After
	// Partial.Expect, only texts of expected rows are valid.
	Vector(shape uint32, position int) (Vector, error)
	// Ranks returns for each row the number of preceding rows with the same shape, which is the
	// index of its cell in a Vector.
	Ranks() ([]int32, error)
	// Columns returns the columns that are not constant for all shapes of the block, without
	// reading them. It is valid until the next call.
	Columns() ([]BlockColumn, error)
	// Column returns the cells of one of these columns, except for constants, in any order. It is
	// valid until the next call.
	Column(id uint32) (Vector, error)
}

// BlockColumn is the number of non-constant cells that a block has in a column.
type BlockColumn struct {
	ID    uint32
	Cells int
}

// Vector is a list of cells. One of its fields is set.
type Vector struct {
	Words   []uint32 // rows.Cell.Word - 1
	Numbers []uint64 // rows.Cell.Num
	Bools   []bool   // also
	Texts   []string // rows.Cell.Data
}

// Cell returns a cell.
func (v *Vector) Cell(i int32) (c rows.Cell) {
	switch {
	case v.Words != nil:
		c.Word = v.Words[i] + 1
	case v.Numbers != nil:
		c.Num = v.Numbers[i]
	case v.Texts != nil:
		c.Data = v.Texts[i]
	case v.Bools[i]:
		c.Num = 1
	}
	return c
}
