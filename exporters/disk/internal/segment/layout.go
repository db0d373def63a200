package segment

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/tracing-backend/tracing/exporters/disk/internal/block"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// layout describes the rows of a segment. It is stored in two sections:
//
//	tables  items of package rows: columns, words, scopes, resources, services, shapes; each in
//	        the order of its ids, from 0
//	layout  columns, (1 + words of the dictionary, or 0 without a dictionary)*,
//	        shapes, (constants [(positions+7)/8], length, cell*)*,
//	        flags, or nothing if they are 0: 1 if filters have integers, 2 if they have the
//	        elements of arrays, 4 if some arrays are too long for that
//
// A bit of constants, from the lowest bit of the first byte, is set for each position of the shape
// at which all rows have the same cell; these cells follow. All numbers are varints. Constant texts
// are words of their column.
type layout struct {
	tables     *rows.Tables
	words      []int          // by column: number of words in its dictionary; further words are constants
	dictionary []bool         // by column
	constants  [][]*rows.Cell // by shape and position; nil where rows differ; only for writing
	inline     []bool         // by column: some varying cells hold texts
	integers   bool           // filters hold integers
	elements   bool           // filters hold the elements of arrays
	longArrays bool           // filters hold otlpdata.LongArray
	block      *block.Layout
}

// complete computes the fields that depend on the others.
func (l *layout) complete() error {
	var err error
	if l.block, err = block.NewLayout(l.tables, l.constants, l.dictionary); err != nil {
		return err
	}
	l.findInline()
	return nil
}

func (l *layout) findInline() {
	l.inline = l.block.VaryingColumns()
	for i := range l.inline {
		l.inline[i] = l.inline[i] && !l.dictionary[i] && l.tables.Columns[i].Kind == otlpdata.ValueString
	}
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

// readTables decodes the tables section. It does not retain b.
func readTables(b []byte) (*rows.Tables, error) {
	t, err := rows.ReadTables(b)
	if err != nil {
		return nil, err
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
		return fmt.Errorf("shapes have %d columns in total, more than %d", n, maxPositions)
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
	var flags byte
	if l.integers {
		flags |= flagIntegers
	}
	if l.elements {
		flags |= flagElements
	}
	if l.longArrays {
		flags |= flagLongArrays
	}
	if flags > 0 {
		dst = append(dst, flags)
	}
	return dst
}

const (
	flagIntegers = 1 << iota
	flagElements
	flagLongArrays
)

// readLayout decodes the layout section and checks that it fits the tables. It does not retain the
// section.
func readLayout(t *rows.Tables, b []byte) (*layout, error) {
	r := reader{b: b}
	l := &layout{tables: t, words: make([]int, len(t.Columns)), dictionary: make([]bool, len(t.Columns))}
	if r.int() != len(t.Columns) {
		return nil, errors.New("number of columns differs from that in the tables section")
	}
	for i := range l.words {
		n := int(r.id(len(t.Words[i]) + 2))
		l.words[i], l.dictionary[i] = max(n-1, 0), n > 0
		if n > 0 && t.Columns[i].Kind != otlpdata.ValueString {
			return nil, errors.New("dictionary for a column that cannot contain texts")
		}
	}
	if r.int() != len(t.Shapes) {
		return nil, errors.New("number of shapes differs from that in the tables section")
	}
	if err := l.readConstants(&r); err != nil {
		return nil, err
	}
	if len(r.b) > 0 {
		flags := r.uvarint()
		l.integers, l.elements, l.longArrays = flags&flagIntegers > 0, flags&flagElements > 0, flags&flagLongArrays > 0
	}
	l.findInline()
	return l, r.end()
}

// readConstants decodes the constants of all shapes.
func (l *layout) readConstants(r *reader) error {
	builder, err := block.NewLayoutBuilder(l.tables, l.dictionary)
	if err != nil {
		return err
	}
	var constant []uint32 // columns
	var cells []rows.Cell
	for i := range l.tables.Shapes {
		columns := l.tables.Shapes[i].Columns
		bitmap := r.take((len(columns) + 7) / 8)
		encoded := r.take(r.int())
		if r.err != nil {
			return r.err
		}
		constant = constant[:0]
		for j, id := range columns {
			if bitmap[j/8]>>(j%8)&1 == 1 {
				constant = append(constant, id)
			}
		}
		if cells, err = l.tables.ReadCells(encoded, constant, cells[:0]); err != nil {
			return err
		}
		if err := builder.Add(bitmap, cells); err != nil {
			return err
		}
	}
	l.block, err = builder.Layout()
	return err
}
