// Package source is what a search reads: the contract between memtables and segments, which hold spans, and the execution of queries.
package source

import (
	"context"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Source is a set of spans under one vocabulary, divided into blocks: a memtable or a segment. What it shows does not change while it is
// held. Safe for concurrent use.
type Source interface {
	// Name tells the source from others in messages.
	Name() string
	// Bounds returns the number of rows and bounds of their starts, both inclusive. It reads nothing.
	Bounds() (rows int, minStart, maxStart uint64)
	// Tables returns the vocabulary of all rows, from disk where it is not in memory yet.
	Tables() (*rows.Tables, error)
	// Blocks describes the blocks. The list must not be changed.
	Blocks() ([]BlockInfo, error)
	// Open decodes what all readers of a block need; columns follow when they are asked for. The caller closes the block.
	Open(ctx context.Context, block int) (Block, error)
	// Trace calls visit with the rows of a trace of a tenant, for each block that has some, in any order. The block is closed when visit
	// returns. A trace that is not there is no error. A damaged block is a *DamageError: the others are visited all the same, and the
	// errors joined.
	Trace(ctx context.Context, tenant string, id otlpdata.TraceID, visit func(b Block, rows []int32) error) error
	Hints
}

// Traces is implemented by sources that find several traces at once in less time than one after the other.
type Traces interface {
	// Traces is Source.Trace for several traces of a tenant, without repetition: visit is also told which of ids the rows are of.
	Traces(ctx context.Context, tenant string, ids []otlpdata.TraceID, visit func(b Block, which int, rows []int32) error) error
}

// Hints let a search pass over what cannot match. They err on the safe side.
type Hints interface {
	// MayHold reports whether a row of the block may have an attribute, of the span, its events or links, whose key is key and whose
	// value is the string text. It is only asked about strings.
	MayHold(block int, key, text string) bool
	// BlockShapes appends the shapes that occur in a block, each once. It is false where they are not known.
	BlockShapes(dst []BlockShape, block int) (shapes []BlockShape, known bool)
	// HoldsIntegers reports whether MayHold may also be asked about integers, by their decimal text.
	HoldsIntegers() bool
	// Constant returns the cell that all rows of a shape have at a position of Shape.Columns, if it is known to be the same.
	Constant(shape uint32, position int) (rows.Cell, bool)
	// Words returns the distinct texts of a string column beside those that are Constant, and whether these are all there are.
	Words(column uint32) (words []string, complete bool)
}

// BlockInfo is what is known of a block without reading it.
type BlockInfo struct {
	Rows               int
	MinStart, MaxStart uint64 // of the spans' starts, both inclusive
}

// BlockShape is a shape's share of a block.
type BlockShape struct {
	Shape   uint32
	Longest Step // no row's Head.Duration is longer than its end
}

// Block is an open block. Rows are numbered from 0 in any order. Slices that it returns are valid until Close and must not be changed. An
// error matches *DamageError when bytes on disk are not what was written. Not for concurrent use.
type Block interface {
	Len() int
	// Shapes, Resources, Starts and Ends return the parts of all heads.
	Shapes() ([]uint32, error)
	Resources() ([]uint32, error)
	Starts() ([]uint64, error)
	Ends() ([]uint64, error)
	// Head reads the whole head of a row.
	Head(row int, h *rows.Head) error
	// Cell returns the cell at a position of the row's Shape.Columns.
	Cell(row, position int) (rows.Cell, error)
	// Cells appends all cells of a row, as rows.Assembler needs them.
	Cells(dst []rows.Cell, row int) ([]rows.Cell, error)
	Close()
}

// Partial is implemented by blocks of which a part is read in less time than the whole.
type Partial interface {
	// TraceID reads less than Head.
	TraceID(row int) (otlpdata.TraceID, error)
	// Expect says of which rows cells are going to be asked for, in any order. Those of others may be asked for, too, but take longer.
	Expect(rows []int32)
}

// DamageError says that a part of a file is not what was written. The rest of the file is readable.
type DamageError struct {
	File string
	Part string // which block or section
	Rows int    // how many spans cannot be read, if that is known
	Err  error
}

// Error names the file, the part and what is wrong.
func (e *DamageError) Error() string { return e.File + ": " + e.Part + " is damaged: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *DamageError) Unwrap() error { return e.Err }
