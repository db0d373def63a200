package block

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
)

// errLayout is matched by the errors of [NewLayout] and [Builder].
var errLayout = errors.New("constants or dictionaries do not fit the tables")

// Builder makes a Layout shape by shape, and so without a list of all constants in memory.
type Builder struct {
	layout *Layout
	lists  lists
	known  map[string]uint32 // plans, by list of columns and bitmap
	cells  cellTable
	teams  map[rows.Service]uint32
	key    []byte // scratch
	// Of the plan at hand:
	at     []int32   // by column: 1 + its group
	varies [][]int32 // by group: ordinals
}

// NewBuilder returns a builder for the segment of tables and dictionaries, as [NewLayout] has them.
func NewBuilder(tables *rows.Tables, dictionary []bool) (*Builder, error) {
	columns := len(tables.Columns)
	if len(dictionary) != columns || len(tables.Words) != columns {
		return nil, fmt.Errorf("%w: lengths differ", errLayout)
	}
	l := &Layout{tables: tables, forms: make([]form, columns), shapes: make([]shape, 0, len(tables.Shapes)),
		users: make([]atomic.Pointer[[]user], columns)}
	for i := range tables.Columns {
		l.forms[i] = formOf(tables.Columns[i].Kind, dictionary[i])
	}
	return &Builder{layout: l, lists: newLists(), known: map[string]uint32{}, cells: cellTable{known: map[rows.Cell]uint32{}},
		teams: map[rows.Service]uint32{}, at: make([]int32, columns)}, nil
}

// Add adds the next shape of the tables. Bit i of the bitmap, from the lowest of its first byte, says that all rows of the shape have one
// cell at position i; these are the cells, in order. Nothing of them is kept.
func (b *Builder) Add(bitmap []byte, cells []rows.Cell) error {
	l, id := b.layout, len(b.layout.shapes)
	if id == len(l.tables.Shapes) {
		return fmt.Errorf("%w: there is no shape %d", errLayout, id)
	}
	s := &l.tables.Shapes[id]
	number, err := b.plan(s.Columns, bitmap)
	if err != nil {
		return fmt.Errorf("shape %d: %w", id, err)
	}
	p := &l.plans[number]
	if len(cells) != len(p.fixed) {
		return fmt.Errorf("shape %d: %w: it has %d constants instead of %d", id, errLayout, len(cells), len(p.fixed))
	}
	of := rows.Service{Tenant: s.Tenant, Name: s.Service}
	team, ok := b.teams[of]
	if !ok {
		team = uint32(len(b.teams))
		b.teams[of] = team
	}
	l.shapes = append(l.shapes, shape{plan: number, constants: uint32(len(l.constants)), groups: uint32(l.groups), team: team})
	l.groups += len(p.groups)
	for i := range cells {
		if int64(cells[i].Word) > int64(len(l.tables.Words[p.fixed[i]])) {
			return fmt.Errorf("shape %d: %w: there is no word %d", id, errLayout, cells[i].Word)
		}
		l.constants = append(l.constants, b.cells.number(&cells[i]))
	}
	return nil
}

// Layout returns the layout of all shapes, once.
func (b *Builder) Layout() (*Layout, error) {
	l := b.layout
	if len(l.shapes) != len(l.tables.Shapes) {
		return nil, fmt.Errorf("%w: there are %d shapes instead of %d", errLayout, len(l.shapes), len(l.tables.Shapes))
	}
	l.plans, l.constants, l.cells = slices.Clone(l.plans), slices.Clone(l.constants), slices.Clone(b.cells.list) // without room for more
	l.teams = len(b.teams)
	return l, nil
}

// plan returns the number of the plan of a list of columns, of which those in the bitmap are constant.
func (b *Builder) plan(columns []uint32, bitmap []byte) (uint32, error) {
	if len(bitmap) != (len(columns)+7)/8 {
		return 0, fmt.Errorf("%w: there are constants of %d positions or so, for %d columns", errLayout, 8*len(bitmap), len(columns))
	}
	b.key = binary.LittleEndian.AppendUint32(b.key[:0], b.lists.number(columns))
	b.key = append(b.key, bitmap...)
	if number, ok := b.known[string(b.key)]; ok {
		return number, nil
	}
	p, err := b.newPlan(columns, bitmap)
	if err != nil {
		return 0, err
	}
	number := uint32(len(b.layout.plans))
	b.layout.plans = append(b.layout.plans, p)
	b.known[string(b.key)] = number
	return number, nil
}

func (b *Builder) newPlan(columns []uint32, bitmap []byte) (plan, error) {
	constants := 0
	for _, c := range bitmap {
		constants += bits.OnesCount8(c)
	}
	p := plan{slots: make([]slot, 0, len(columns)), fixed: make([]uint32, 0, min(constants, len(columns)))}
	ordinal := int32(0)
	for i, id := range columns {
		switch {
		case int(id) >= len(b.layout.forms):
			return p, fmt.Errorf("%w: there is no column %d", errLayout, id)
		case bitmap[i/8]>>(i%8)&1 == 1:
			p.slots = append(p.slots, slot{group: constant, nth: int32(len(p.fixed))})
			p.fixed = append(p.fixed, id)
		case b.layout.forms[id] == formNone:
			p.slots = append(p.slots, slot{group: constant, nth: empty})
		default:
			b.vary(&p, id, ordinal)
			ordinal++
		}
	}
	p.groups, p.ordinals = slices.Clone(p.groups), make([]int32, 0, ordinal)
	for i, g := range p.groups {
		p.ordinals = append(p.ordinals, b.varies[i]...)
		b.varies[i] = b.varies[i][:0]
		b.at[g.column] = 0
	}
	return p, nil
}

// vary adds a position to the group of its column.
func (b *Builder) vary(p *plan, column uint32, ordinal int32) {
	if b.at[column] == 0 {
		p.groups = append(p.groups, group{column: column})
		b.at[column] = int32(len(p.groups))
		if len(b.varies) < len(p.groups) {
			b.varies = append(b.varies, nil)
		}
	}
	at := b.at[column] - 1
	g := &p.groups[at]
	p.slots = append(p.slots, slot{group: at, nth: g.count})
	b.varies[at] = append(b.varies[at], ordinal)
	g.count++
}

// lists numbers lists of columns. Shapes that were read from a file share theirs in memory, those that are made for one may not.
type lists struct {
	first map[*uint32]listed
	known map[string]uint32
	key   []byte // scratch
}

// listed is the list that begins at an address, the longest one.
type listed struct {
	length int
	number uint32
}

func newLists() lists { return lists{first: map[*uint32]listed{}, known: map[string]uint32{}} }

func (s *lists) number(columns []uint32) uint32 {
	if len(columns) == 0 {
		return 0
	}
	if l, ok := s.first[&columns[0]]; ok && l.length == len(columns) {
		return l.number
	}
	s.key = s.key[:0]
	for _, c := range columns {
		s.key = binary.LittleEndian.AppendUint32(s.key, c)
	}
	number, ok := s.known[string(s.key)]
	if !ok {
		number = uint32(len(s.known) + 1)
		s.known[string(s.key)] = number
	}
	s.first[&columns[0]] = listed{len(columns), number}
	return number
}

// cellTable is a list of cells without repetitions. Most are words, whose numbers are small.
type cellTable struct {
	list  []rows.Cell
	words []uint32 // by word: 1 + its cell
	known map[rows.Cell]uint32
}

// number returns where a cell is in the list.
func (t *cellTable) number(c *rows.Cell) uint32 {
	if c.Word == 0 {
		n, ok := t.known[*c]
		if !ok {
			own := *c
			own.Data = strings.Clone(c.Data)
			n = uint32(len(t.list))
			t.known[own] = n
			t.list = append(t.list, own)
		}
		return n
	}
	if more := int(c.Word) + 1 - len(t.words); more > 0 {
		t.words = append(t.words, make([]uint32, more)...)
	}
	at := &t.words[c.Word]
	if *at == 0 {
		t.list = append(t.list, rows.Cell{Word: c.Word})
		*at = uint32(len(t.list))
	}
	return *at - 1
}
