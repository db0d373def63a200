package segment

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tracing-backend/tracing/exporters/disk/internal/block"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// layout is what a segment says about all its rows: two sections.
//
//	tables  items of package rows: columns, words, scopes, resources, shapes; each in the order of its ids, from 0
//	layout  columns, (1 + words of the dictionary, or 0 if it is none)*,
//	        shapes, (constants [(positions+7)/8], length, cell*)*,
//	        flags, or nothing if they are 0: 1 if filters have integers
//
// A bit of constants is set, from the lowest of the first byte, for each position of the shape at which all its rows have the same cell;
// these cells follow. All numbers are varints, and texts among the constants words of their column.
type layout struct {
	tables     *rows.Tables
	words      []int          // by column: how many of its words are its dictionary; the rest are constants
	dictionary []bool         // by column
	constants  [][]*rows.Cell // by shape and position; nil where rows differ
	inline     []bool         // by column: cells that vary hold texts
	integers   bool           // filters have integers, too
	block      *block.Layout
	cellMemory int64 // bytes that the constants take, but for the list of them
}

// plan fills in what follows from the rest.
func (l *layout) plan() error {
	l.inline = make([]bool, len(l.tables.Columns))
	for i := range l.tables.Shapes {
		for j, column := range l.tables.Shapes[i].Columns {
			if l.constants[i][j] == nil && !l.dictionary[column] && l.tables.Columns[column].Kind == otlpdata.ValueString {
				l.inline[column] = true
			}
		}
	}
	var err error
	l.block, err = block.NewLayout(l.tables, l.constants, l.dictionary)
	return err
}

func (l *layout) appendTables(dst []byte) []byte {
	t := l.tables
	for i := range t.Columns {
		dst = rows.AppendColumn(dst, uint32(i), t.Columns[i])
	}
	for i, words := range t.Words {
		for j, w := range words {
			dst = rows.AppendWord(dst, uint32(i), uint32(j), w)
		}
	}
	for i := range t.Scopes {
		dst = rows.AppendScope(dst, uint32(i), &t.Scopes[i])
	}
	for i := range t.Resources {
		dst = rows.AppendResource(dst, uint32(i), t.Resources[i].Tenant, &t.Resources[i].Resource)
	}
	services := make(map[rows.Service]uint32)
	for i := range t.Shapes {
		of := rows.Service{Tenant: t.Shapes[i].Tenant, Name: t.Shapes[i].Service}
		id, known := services[of]
		if !known {
			id = uint32(len(services))
			services[of] = id
			dst = rows.AppendService(dst, id, of)
		}
		dst = rows.AppendShape(dst, uint32(i), id, &t.Shapes[i])
	}
	return dst
}

// readTables reads the tables section, and keeps it.
func readTables(b []byte) (*rows.Tables, error) {
	t := &rows.Tables{}
	for len(b) > 0 {
		tag, payload, rest, err := rows.NextItem(b)
		if err != nil {
			return nil, err
		}
		known, err := t.Define(tag, payload)
		if err != nil {
			return nil, err
		}
		if !known {
			return nil, fmt.Errorf("an item of kind %d", tag)
		}
		if t.Lost() > 0 { // asked at once, since a gap of ids is filled
			return nil, errors.New("it does not hold all that it refers to")
		}
		b = rest
	}
	return t, checkPositions(t)
}

// checkPositions fails if the shapes have too many columns.
func checkPositions(t *rows.Tables) error {
	n := 0
	for i := range t.Shapes {
		n += len(t.Shapes[i].Columns)
	}
	if n > maxPositions {
		return fmt.Errorf("shapes have %d columns", n)
	}
	return nil
}

func (l *layout) appendLayout(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(l.words)))
	for i, n := range l.words {
		if l.dictionary[i] {
			n++
		}
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	dst = binary.AppendUvarint(dst, uint64(len(l.constants)))
	var cells []byte
	for i, constants := range l.constants {
		bitmap := make([]byte, (len(constants)+7)/8)
		cells = cells[:0]
		for j, c := range constants {
			if c != nil {
				bitmap[j/8] |= 1 << (j % 8)
				cells = rows.AppendCell(cells, l.tables.Columns[l.tables.Shapes[i].Columns[j]].Kind, *c)
			}
		}
		dst = append(dst, bitmap...)
		dst = append(binary.AppendUvarint(dst, uint64(len(cells))), cells...)
	}
	if l.integers {
		dst = append(dst, flagIntegers)
	}
	return dst
}

const flagIntegers = 1

// readLayout reads the layout section, which fits the tables. The result keeps it.
func readLayout(t *rows.Tables, b []byte) (*layout, error) {
	r := reader{b: b}
	l := &layout{tables: t, words: make([]int, len(t.Columns)), dictionary: make([]bool, len(t.Columns)),
		constants: make([][]*rows.Cell, len(t.Shapes))}
	if r.int() != len(t.Columns) {
		return nil, errors.New("it is of other tables")
	}
	for i := range l.words {
		n := int(r.id(len(t.Words[i]) + 2))
		l.words[i], l.dictionary[i] = max(n-1, 0), n > 0
		if n > 0 && t.Columns[i].Kind != otlpdata.ValueString {
			return nil, errors.New("it has a dictionary for a column without texts")
		}
	}
	if r.int() != len(t.Shapes) {
		return nil, errors.New("it is of other tables")
	}
	c := constantsReader{layout: l, shared: make([][]rows.Cell, len(t.Columns))}
	for i := range l.constants {
		if err := c.read(&r, i); err != nil {
			return nil, err
		}
	}
	if len(r.b) > 0 {
		l.integers = r.uvarint()&flagIntegers > 0
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	return l, l.plan()
}

// constantsReader reads the constants of all shapes. Most are words that other shapes have, too: their cells are shared.
type constantsReader struct {
	*layout
	shared [][]rows.Cell // by column and word
	// Of the shape at hand: the positions of constants, their columns and cells.
	at, of []uint32
	cells  []rows.Cell
}

func (c *constantsReader) read(r *reader, shape int) error {
	columns := c.tables.Shapes[shape].Columns
	bitmap := r.take((len(columns) + 7) / 8)
	encoded := r.take(r.int())
	if r.err != nil {
		return r.err
	}
	constants := make([]*rows.Cell, len(columns))
	c.constants[shape] = constants
	c.at, c.of = c.at[:0], c.of[:0]
	for j, id := range columns {
		if bitmap[j/8]>>(j%8)&1 == 1 {
			c.at, c.of = append(c.at, uint32(j)), append(c.of, id)
		}
	}
	var err error
	if c.cells, err = c.tables.ReadCells(encoded, c.of, c.cells[:0]); err != nil {
		return err
	}
	for i := range c.cells {
		constants[c.at[i]] = c.share(c.of[i], c.cells[i])
	}
	return nil
}

// share returns a cell of a column: the one of its word, if it is a word.
func (c *constantsReader) share(column uint32, cell rows.Cell) *rows.Cell {
	words := len(c.tables.Words[column])
	if cell.Word == 0 || int(cell.Word) > words {
		c.cellMemory += cellMemory
		own := cell
		return &own
	}
	if c.shared[column] == nil {
		c.cellMemory += int64(words) * cellMemory
		c.shared[column] = make([]rows.Cell, words)
	}
	at := &c.shared[column][cell.Word-1]
	*at = cell
	return at
}
