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

// errLayout matches the errors of [NewLayout] and [LayoutBuilder].
var errLayout = errors.New("layout does not match the tables")

// LayoutBuilder builds a Layout shape by shape, without holding all constants in memory. It is not
// safe for concurrent use.
type LayoutBuilder struct {
	layout   *Layout
	lists    lists
	known    map[string]uint32 // patterns by list of columns and bitmap
	cells    cellTable
	services map[rows.Service]uint32
	key      []byte // scratch
	// Of the current pattern:
	at     []int32   // by column: 1 + its group
	varies [][]int32 // by group: ordinals
}

// NewLayoutBuilder returns a builder for a segment with the given tables and dictionaries; see
// [NewLayout].
func NewLayoutBuilder(tables *rows.Tables, dictionary []bool) (*LayoutBuilder, error) {
	columns := len(tables.Columns)
	if len(dictionary) != columns || len(tables.Words) != columns {
		return nil, fmt.Errorf("%w: number of dictionaries or vocabularies differs from the number of columns", errLayout)
	}
	l := &Layout{tables: tables, encodings: make([]encoding, columns), shapes: make([]shape, 0, len(tables.Shapes)),
		columnGroups: make([]atomic.Pointer[[]patternGroup], columns)}
	for i := range tables.Columns {
		l.encodings[i] = encodingOf(tables.Columns[i].Kind, dictionary[i])
	}
	return &LayoutBuilder{layout: l, lists: newLists(), known: map[string]uint32{}, cells: cellTable{known: map[rows.Cell]uint32{}},
		services: map[rows.Service]uint32{}, at: make([]int32, columns)}, nil
}

// Add adds the next shape of the tables. Bit i of the bitmap, from the lowest bit of the first
// byte, is set if all rows of the shape have the same cell at position i; cells are these cells, in
// order. Add does not retain its arguments.
func (b *LayoutBuilder) Add(bitmap []byte, cells []rows.Cell) error {
	l, id := b.layout, len(b.layout.shapes)
	if id == len(l.tables.Shapes) {
		return fmt.Errorf("%w: shape %d is not defined", errLayout, id)
	}
	s := &l.tables.Shapes[id]
	number, err := b.pattern(s.Columns, bitmap)
	if err != nil {
		return fmt.Errorf("shape %d: %w", id, err)
	}
	p := &l.patterns[number]
	if len(cells) != len(p.fixed) {
		return fmt.Errorf("shape %d: %w: %d constants, want %d", id, errLayout, len(cells), len(p.fixed))
	}
	of := rows.Service{Tenant: s.Tenant, Name: s.Service}
	service, ok := b.services[of]
	if !ok {
		service = uint32(len(b.services))
		b.services[of] = service
	}
	l.shapes = append(l.shapes, shape{pattern: number, constants: uint32(len(l.constants)), groups: uint32(l.groups), service: service})
	l.groups += len(p.groups)
	for i := range cells {
		if int64(cells[i].Word) > int64(len(l.tables.Words[p.fixed[i]])) {
			return fmt.Errorf("shape %d: %w: vocabulary entry %d is not defined", id, errLayout, cells[i].Word)
		}
		l.constants = append(l.constants, b.cells.number(&cells[i]))
	}
	return nil
}

// Layout returns the layout of all shapes. It must be called only once.
func (b *LayoutBuilder) Layout() (*Layout, error) {
	l := b.layout
	if len(l.shapes) != len(l.tables.Shapes) {
		return nil, fmt.Errorf("%w: %d shapes, want %d", errLayout, len(l.shapes), len(l.tables.Shapes))
	}
	// Clones have no spare capacity.
	l.patterns, l.constants, l.cells = slices.Clone(l.patterns), slices.Clone(l.constants), slices.Clone(b.cells.list)
	l.services = len(b.services)
	return l, nil
}

// pattern returns the number of the pattern for a list of columns and a bitmap of constants.
func (b *LayoutBuilder) pattern(columns []uint32, bitmap []byte) (uint32, error) {
	if len(bitmap) != (len(columns)+7)/8 {
		return 0, fmt.Errorf("%w: bitmap of %d bytes for %d columns", errLayout, len(bitmap), len(columns))
	}
	b.key = binary.LittleEndian.AppendUint32(b.key[:0], b.lists.number(columns))
	b.key = append(b.key, bitmap...)
	if number, ok := b.known[string(b.key)]; ok {
		return number, nil
	}
	p, err := b.newPattern(columns, bitmap)
	if err != nil {
		return 0, err
	}
	number := uint32(len(b.layout.patterns))
	b.layout.patterns = append(b.layout.patterns, p)
	b.known[string(b.key)] = number
	return number, nil
}

func (b *LayoutBuilder) newPattern(columns []uint32, bitmap []byte) (pattern, error) {
	constants := 0
	for _, c := range bitmap {
		constants += bits.OnesCount8(c)
	}
	p := pattern{slots: make([]slot, 0, len(columns)), fixed: make([]uint32, 0, min(constants, len(columns)))}
	ordinal := int32(0)
	for i, id := range columns {
		switch {
		case int(id) >= len(b.layout.encodings):
			return p, fmt.Errorf("%w: column %d is not defined", errLayout, id)
		case bitmap[i/8]>>(i%8)&1 == 1:
			p.slots = append(p.slots, slot{group: constant, nth: int32(len(p.fixed))})
			p.fixed = append(p.fixed, id)
		case b.layout.encodings[id] == encodeNone:
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

// vary adds a varying position to the group of its column.
func (b *LayoutBuilder) vary(p *pattern, column uint32, ordinal int32) {
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

// lists numbers lists of columns. Shapes from a file share equal lists in memory; shapes that were
// built one by one may not.
type lists struct {
	first map[*uint32]listed
	known map[string]uint32
	key   []byte // scratch
}

// listed is the longest known list that starts at an address.
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

// cellTable is a list of distinct cells. Most of them are words, which have small numbers.
type cellTable struct {
	list  []rows.Cell
	words []uint32 // by word: 1 + index of its cell
	known map[rows.Cell]uint32
}

// number returns the index of a cell in the list. It adds the cell if it is new.
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
