package block

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Layout is what a segment says about the rows of all its blocks. It does not change and is safe for concurrent use.
type Layout struct {
	tables    *rows.Tables
	constants [][]*rows.Cell
	forms     []form  // by column
	shapes    []shape // by shape, and one more that ends the last
	// The lists of all shapes.
	slots    []slot  // by position
	groups   []group // by column in the order of first positions
	ordinals []int32 // by group: which of the cells that vary the group has

	teams int // how many; see the type

	users []atomic.Pointer[[]user] // by column; made when they are first needed
}

// user is a group of a shape, by its place in the list of groups.
type user struct {
	shape uint32
	group uint32
}

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

// shape says where the cells of a shape's rows are: its parts of the layout's lists.
type shape struct {
	slots    uint32
	groups   uint32
	ordinals uint32
	team     uint32 // the number of its tenant's service
}

// slot is one position of a shape.
type slot struct {
	group int32 // index among the shape's groups; or constant
	nth   int32 // which of the group's positions it is
}

// constant is the group of a position that does not vary.
const constant = -1

// group is all varying positions of one column in a shape. Groups follow each other as their positions do.
type group struct {
	column uint32
	count  int32 // of positions
}

// errLayout is matched by the errors of [NewLayout].
var errLayout = errors.New("constants or dictionaries do not fit the tables")

// NewLayout returns the layout of a segment. tables are the segment's own, shapes and words ranked by frequency, which keeps codes small.
// constants holds, by shape and position in Shape.Columns, the cell that all rows of the shape have there, and nil where they differ.
// dictionary tells by column the string columns all of whose varying cells are words (Cell.Word > 0). The layout keeps all three. An error
// means that they do not fit each other.
func NewLayout(tables *rows.Tables, constants [][]*rows.Cell, dictionary []bool) (*Layout, error) {
	if len(constants) != len(tables.Shapes) || len(dictionary) != len(tables.Columns) || len(tables.Words) != len(tables.Columns) {
		return nil, fmt.Errorf("%w: lengths differ", errLayout)
	}
	l := &Layout{tables: tables, constants: constants, forms: make([]form, len(tables.Columns)), shapes: make([]shape, len(tables.Shapes)+1)}
	for i := range tables.Columns {
		l.forms[i] = formOf(tables.Columns[i].Kind, dictionary[i])
	}
	teams := map[[2]string]uint32{}
	l.reserve()
	p := planner{Layout: l, at: make([]int32, len(tables.Columns))}
	for i := range tables.Shapes {
		s := &tables.Shapes[i]
		l.begin(i)
		team, ok := teams[[2]string{s.Tenant, s.Service}]
		if !ok {
			team = uint32(len(teams))
			teams[[2]string{s.Tenant, s.Service}] = team
		}
		l.shapes[i].team = team
		if err := p.plan(s.Columns, constants[i]); err != nil {
			return nil, fmt.Errorf("shape %d: %w", i, err)
		}
	}
	l.begin(len(tables.Shapes))
	l.teams = len(teams)
	l.users = make([]atomic.Pointer[[]user], len(tables.Columns))
	return l, nil
}

// reserve makes room for the lists, which are most of what a layout takes: appending would leave them with room for more.
func (l *Layout) reserve() {
	positions, varying, groups := 0, 0, 0
	last := make([]int, len(l.forms)) // by column: 1 + the last shape in which it varies
	for i := range l.tables.Shapes {
		columns := l.tables.Shapes[i].Columns
		positions += len(columns)
		for j, id := range columns {
			if j >= len(l.constants[i]) || int(id) >= len(l.forms) || l.constants[i][j] != nil || l.forms[id] == formNone {
				continue
			}
			varying++
			if last[id] != i+1 {
				last[id] = i + 1
				groups++
			}
		}
	}
	l.slots, l.groups, l.ordinals = make([]slot, 0, positions), make([]group, 0, groups), make([]int32, 0, varying)
}

// begin lets a shape's parts of the lists begin at their ends.
func (l *Layout) begin(shape int) {
	s := &l.shapes[shape]
	s.slots, s.groups, s.ordinals = uint32(len(l.slots)), uint32(len(l.groups)), uint32(len(l.ordinals))
}

// Tables returns what the layout was made of.
func (l *Layout) Tables() *rows.Tables { return l.tables }

// Constant returns the cell that all rows of a shape have at a position, if it is the same.
func (l *Layout) Constant(shape uint32, position int) (rows.Cell, bool) {
	if c := l.constants[shape][position]; c != nil {
		return *c, true
	}
	return rows.Cell{}, l.slotsOf(shape)[position].group == constant
}

func (l *Layout) slotsOf(shape uint32) []slot {
	return l.slots[l.shapes[shape].slots:l.shapes[shape+1].slots]
}

func (l *Layout) groupsOf(shape uint32) []group {
	return l.groups[l.shapes[shape].groups:l.shapes[shape+1].groups]
}

// usersOf returns the groups of a column, by shape.
func (l *Layout) usersOf(column uint32) []user {
	if u := l.users[column].Load(); u != nil {
		return *u
	}
	var users []user
	for shape := range l.shapes[:len(l.shapes)-1] {
		first := l.shapes[shape].groups
		for i, g := range l.groupsOf(uint32(shape)) {
			if g.column == column {
				users = append(users, user{uint32(shape), first + uint32(i)})
			}
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

// planner appends shapes to the lists.
type planner struct {
	*Layout
	at     []int32   // by column: 1 + its group in the shape at hand
	varies [][]int32 // by group: ordinals
}

func (p *planner) plan(columns []uint32, constants []*rows.Cell) error {
	if len(constants) != len(columns) {
		return fmt.Errorf("%w: %d constants for %d columns", errLayout, len(constants), len(columns))
	}
	from, ordinal := len(p.groups), int32(0)
	for i, id := range columns {
		if int(id) >= len(p.forms) {
			return fmt.Errorf("%w: there is no column %d", errLayout, id)
		}
		c := constants[i]
		if c != nil && uint64(c.Word) > uint64(len(p.tables.Words[id])) {
			return fmt.Errorf("%w: there is no word %d", errLayout, c.Word)
		}
		if c != nil || p.forms[id] == formNone {
			p.slots = append(p.slots, slot{group: constant})
			continue
		}
		p.vary(from, id, ordinal)
		ordinal++
	}
	for i, g := range p.groups[from:] {
		p.ordinals = append(p.ordinals, p.varies[i]...)
		p.varies[i] = p.varies[i][:0]
		p.at[g.column] = 0
	}
	return nil
}

// vary adds a position to the group of its column. The shape's groups begin at from.
func (p *planner) vary(from int, column uint32, ordinal int32) {
	if p.at[column] == 0 {
		p.groups = append(p.groups, group{column: column})
		p.at[column] = int32(len(p.groups) - from)
		if len(p.varies) < len(p.groups)-from {
			p.varies = append(p.varies, nil)
		}
	}
	at := p.at[column] - 1
	g := &p.groups[from+int(at)]
	p.slots = append(p.slots, slot{group: at, nth: g.count})
	p.varies[at] = append(p.varies[at], ordinal)
	g.count++
}
