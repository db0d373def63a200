package block

import (
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Layout is what a segment says about the rows of all its blocks. It does not change and is safe for concurrent use. A segment has thousands
// of shapes, but few kinds of them: most have the columns of another shape and vary at the same positions.
type Layout struct {
	tables    *rows.Tables
	forms     []form // by column
	shapes    []shape
	plans     []plan
	constants []uint32    // of all shapes, one shape after the other, by position: which of cells it is
	cells     []rows.Cell // each once
	groups    int         // that all shapes have together
	teams     int         // how many; see the type

	users []atomic.Pointer[[]user] // by column; made when they are first needed
}

// user is a group of a plan.
type user struct{ plan, group uint32 }

// form is how the varying cells of a column are stored.
type form uint8

const (
	formNone   form = iota // nothing: empty values
	formWord               // Codes: number of the word, from 0
	formText               // Strings
	formInt                // Int64s
	formDouble             // Float64s
	formBool               // Bools
	forms
)

// shape says where the cells of a shape's rows are.
type shape struct {
	plan      uint32
	constants uint32 // where its constants begin
	groups    uint32 // that all shapes before it have
	team      uint32 // the number of its tenant's service
}

// plan is what shapes have in common whose columns are the same and vary at the same positions.
type plan struct {
	slots    []slot   // by position
	groups   []group  // by column in the order of first positions
	ordinals []int32  // which of the cells that vary the groups have, one group after the other
	fixed    []uint32 // columns of constants
}

// slot is one position of a shape.
type slot struct {
	group int32 // index among the plan's groups; or constant
	nth   int32 // which of the group's positions it is, or which of the shape's constants; or empty
}

const (
	// constant is the group of a position that does not vary.
	constant = -1
	// empty is the nth of a constant that is an empty value.
	empty = -1
)

// group is all varying positions of one column in a shape. Groups follow each other as their positions do.
type group struct {
	column uint32
	count  int32 // of positions
}

// NewLayout returns the layout of a segment. tables are the segment's own, shapes and words ranked by frequency, which keeps codes small.
// constants holds, by shape and position in Shape.Columns, the cell that all rows of the shape have there, and nil where they differ.
// dictionary tells by column the string columns all of whose varying cells are words (Cell.Word > 0). The layout keeps the tables. An error
// means that the three do not fit each other.
func NewLayout(tables *rows.Tables, constants [][]*rows.Cell, dictionary []bool) (*Layout, error) {
	b, err := NewBuilder(tables, dictionary)
	if err != nil {
		return nil, err
	}
	var bitmap []byte
	var cells []rows.Cell
	for i, list := range constants {
		if i == len(tables.Shapes) || len(list) != len(tables.Shapes[i].Columns) {
			return nil, fmt.Errorf("shape %d: %w: there are %d constants", i, errLayout, len(list))
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

// Tables returns what the layout was made of.
func (l *Layout) Tables() *rows.Tables { return l.tables }

// Constant returns the cell that all rows of a shape have at a position, if it is the same.
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

// Varying tells by column whether cells of it vary in some shape.
func (l *Layout) Varying() []bool {
	varying := make([]bool, len(l.forms))
	for i := range l.plans {
		for _, g := range l.plans[i].groups {
			varying[g.column] = true
		}
	}
	return varying
}

// Memory estimates the bytes of the layout without its tables.
func (l *Layout) Memory() int64 {
	n := int64(cap(l.shapes))*int64(unsafe.Sizeof(shape{})) + int64(cap(l.plans))*int64(unsafe.Sizeof(plan{})) +
		int64(cap(l.constants))*int64(unsafe.Sizeof(l.constants[0])) + int64(cap(l.cells))*int64(unsafe.Sizeof(rows.Cell{})) +
		int64(cap(l.users))*int64(unsafe.Sizeof(l.users[0])) + int64(cap(l.forms))
	for i := range l.plans {
		p := &l.plans[i]
		n += int64(cap(p.slots))*int64(unsafe.Sizeof(slot{})) + int64(cap(p.ordinals)+cap(p.fixed))*int64(unsafe.Sizeof(int32(0))) +
			int64(cap(p.groups))*int64(unsafe.Sizeof(group{})+unsafe.Sizeof(user{}))
	}
	for i := range l.cells {
		n += int64(len(l.cells[i].Data))
	}
	return n
}

func (l *Layout) slotsOf(shape uint32) []slot { return l.plans[l.shapes[shape].plan].slots }

func (l *Layout) groupsOf(shape uint32) []group { return l.plans[l.shapes[shape].plan].groups }

// usersOf returns the groups of a column, at most one of each plan.
func (l *Layout) usersOf(column uint32) []user {
	if u := l.users[column].Load(); u != nil {
		return *u
	}
	var users []user
	for i := range l.plans {
		at := slices.IndexFunc(l.plans[i].groups, func(g group) bool { return g.column == column })
		if at >= 0 {
			users = append(users, user{uint32(i), uint32(at)})
		}
	}
	l.users[column].Store(&users)
	return users
}

func formOf(kind otlpdata.ValueKind, words bool) form {
	switch kind {
	case otlpdata.ValueEmpty:
		return formNone
	case otlpdata.ValueBool:
		return formBool
	case otlpdata.ValueInt:
		return formInt
	case otlpdata.ValueDouble:
		return formDouble
	case otlpdata.ValueString:
		if words {
			return formWord
		}
	}
	return formText
}
