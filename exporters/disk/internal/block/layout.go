package block

import (
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Layout holds the constants and the encodings of columns for all blocks of a segment. It is
// immutable and safe for concurrent use. Shapes with the same columns and the same constant
// positions share a pattern. A segment has thousands of shapes but few patterns.
type Layout struct {
	tables    *rows.Tables
	encodings []encoding // by column
	shapes    []shape
	patterns  []pattern
	constants []uint32    // of all shapes, concatenated, by position: index into cells
	cells     []rows.Cell // distinct cells
	groups    int         // total number of groups of all shapes
	services  int         // number of distinct services of shapes

	columnGroups []atomic.Pointer[[]patternGroup] // by column; built when first needed
}

// patternGroup identifies a group of a pattern.
type patternGroup struct{ pattern, group uint32 }

// encoding is the way in which the varying cells of a column are stored.
type encoding uint8

const (
	encodeNone   encoding = iota // empty values: not stored
	encodeWord                   // Codes: index of the word, from 0
	encodeText                   // Strings
	encodeInt                    // Int64s
	encodeDouble                 // Float64s
	encodeBool                   // Bools
	numEncodings                 // number of encodings
)

// shape locates the constants and groups of a shape.
type shape struct {
	pattern   uint32
	constants uint32 // index of its first constant
	groups    uint32 // number of groups of all preceding shapes
	service   uint32 // number of its service
}

// pattern is shared by shapes with the same columns and the same varying positions.
type pattern struct {
	slots    []slot   // by position
	groups   []group  // one per varying column, in the order of first positions
	ordinals []int32  // by group and position: which of the varying cells of a row it is
	fixed    []uint32 // columns of constants
}

// slot describes one position of a shape.
type slot struct {
	group int32 // index into the groups of the pattern, or constant
	nth   int32 // index among the positions of the group or among the constants of the shape, or empty
}

const (
	// constant is the group of a position that does not vary.
	constant = -1
	// empty is the nth of a constant that is an empty value.
	empty = -1
)

// group is the set of varying positions of a column in a pattern.
type group struct {
	column uint32
	count  int32 // number of positions
}

// NewLayout returns the layout of a segment. In tables, shapes and words are sorted by descending
// frequency, which keeps codes small. constants holds, by shape and position in Shape.Columns, the
// cell that all rows of the shape have there, or nil if they differ. dictionary is true for string
// columns whose varying cells are all words (Cell.Word > 0). The layout retains the tables.
// NewLayout fails if the arguments do not fit each other.
func NewLayout(tables *rows.Tables, constants [][]*rows.Cell, dictionary []bool) (*Layout, error) {
	b, err := NewLayoutBuilder(tables, dictionary)
	if err != nil {
		return nil, err
	}
	var bitmap []byte
	var cells []rows.Cell
	for i, list := range constants {
		if i == len(tables.Shapes) || len(list) != len(tables.Shapes[i].Columns) {
			return nil, fmt.Errorf("shape %d: %w: unexpected list of %d constants", i, errLayout, len(list))
		}
		bitmap, cells = resize(bitmap, (len(list)+7)/8), cells[:0]
		clear(bitmap)
		for j, c := range list {
			if c != nil {
				bitmap[j/8] |= 1 << (j % 8)
				cells = append(cells, *c)
			}
		}
		if err := b.Add(bitmap, cells); err != nil {
			return nil, err
		}
	}
	return b.Layout()
}

// Tables returns the tables of the layout.
func (l *Layout) Tables() *rows.Tables { return l.tables }

// Constant returns the cell that all rows of a shape have at a position, if it is the same in all.
func (l *Layout) Constant(shape uint32, position int) (rows.Cell, bool) {
	s := l.slotsOf(shape)[position]
	if s.group != constant {
		return rows.Cell{}, false
	}
	return l.constant(shape, s.nth), true
}

// constant returns a constant of a shape.
func (l *Layout) constant(shape uint32, nth int32) rows.Cell {
	if nth == empty {
		return rows.Cell{}
	}
	return l.cells[l.constants[l.shapes[shape].constants+uint32(nth)]]
}

// VaryingColumns reports by column whether its cells vary in some shape.
func (l *Layout) VaryingColumns() []bool {
	varying := make([]bool, len(l.encodings))
	for i := range l.patterns {
		for _, g := range l.patterns[i].groups {
			varying[g.column] = true
		}
	}
	return varying
}

// Memory returns the approximate size of the layout in bytes, without its tables.
func (l *Layout) Memory() int64 {
	n := int64(cap(l.shapes))*int64(unsafe.Sizeof(shape{})) + int64(cap(l.patterns))*int64(unsafe.Sizeof(pattern{})) +
		int64(cap(l.constants))*int64(unsafe.Sizeof(l.constants[0])) + int64(cap(l.cells))*int64(unsafe.Sizeof(rows.Cell{})) +
		int64(cap(l.columnGroups))*int64(unsafe.Sizeof(l.columnGroups[0])) + int64(cap(l.encodings))
	for i := range l.patterns {
		p := &l.patterns[i]
		n += int64(cap(p.slots))*int64(unsafe.Sizeof(slot{})) + int64(cap(p.ordinals)+cap(p.fixed))*int64(unsafe.Sizeof(int32(0))) +
			int64(cap(p.groups))*int64(unsafe.Sizeof(group{})+unsafe.Sizeof(patternGroup{}))
	}
	for i := range l.cells {
		n += int64(len(l.cells[i].Data))
	}
	return n
}

func (l *Layout) slotsOf(shape uint32) []slot { return l.patterns[l.shapes[shape].pattern].slots }

func (l *Layout) groupsOf(shape uint32) []group { return l.patterns[l.shapes[shape].pattern].groups }

// groupsOfColumn returns the groups of a column, at most one per pattern.
func (l *Layout) groupsOfColumn(column uint32) []patternGroup {
	if u := l.columnGroups[column].Load(); u != nil {
		return *u
	}
	var columnGroups []patternGroup
	for i := range l.patterns {
		at := slices.IndexFunc(l.patterns[i].groups, func(g group) bool { return g.column == column })
		if at >= 0 {
			columnGroups = append(columnGroups, patternGroup{uint32(i), uint32(at)})
		}
	}
	l.columnGroups[column].Store(&columnGroups)
	return columnGroups
}

func encodingOf(kind otlpdata.ValueKind, words bool) encoding {
	switch kind {
	case otlpdata.ValueEmpty:
		return encodeNone
	case otlpdata.ValueBool:
		return encodeBool
	case otlpdata.ValueInt:
		return encodeInt
	case otlpdata.ValueDouble:
		return encodeDouble
	case otlpdata.ValueString:
		if words {
			return encodeWord
		}
	}
	return encodeText
}
