package segment

import (
	"fmt"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// convertStep describes the conversion of a cell of the input. The steps of a shape are in the
// order of its columns; the last step is the end of the row.
type convertStep struct {
	column     uint32 // of the input
	skip       uint32
	filter     uint32 // column of the segment whose filter gets the value, or unused
	form       cellForm
	conversion conversion
	role       cellRole
}

// cellRole is the use of a cell by statistics.
type cellRole uint8

const (
	noRole cellRole = iota
	nameRole
	traceStateRole
)

// roleOf returns the role of the cells of a column in a shape.
func roleOf(s *rows.Shape, c *rows.Column) cellRole {
	switch {
	case s.NameInRow && c.Place == rows.Name:
		return nameRole
	case c.Place == rows.TraceState && c.Kind == otlpdata.ValueString:
		return traceStateRole
	}
	return noRole
}

// rowTexts are the texts of a row that statistics use.
type rowTexts struct {
	name       string // "" if the name is part of the shape
	traceState string
}

// conversion is the kind of conversion of a cell.
type conversion uint8

const (
	drop      conversion = iota // the cell is constant
	asNumber                    // unchanged
	asInteger                   // unchanged, and added to the filter
	asText                      // a text; words are replaced by their texts
	asWord                      // texts are replaced by words of the segment
)

// flushConverter converts encoded rows of the input to rows of the segment.
type flushConverter struct {
	filters      *filterBuilder    // gets the values of varying cells
	words        [][]string        // by column of the input
	dictionaries []dictionaryIndex // by column of the input
	first        []int             // by shape of the input: index of its first step
	steps        []convertStep
}

func newFlushConverter(v *vocabulary, p *analyzer, s *filterBuilder) *flushConverter {
	m := &flushConverter{filters: s, words: v.in.Words, dictionaries: v.dictionaries, first: make([]int, len(v.in.Shapes)+1)}
	for id := range v.in.Shapes {
		m.first[id] = len(m.steps)
		if p.shapes[id] > 0 {
			m.plan(v, p, uint32(id))
		}
	}
	m.first[len(v.in.Shapes)] = len(m.steps)
	return m
}

func (m *flushConverter) plan(v *vocabulary, p *analyzer, id uint32) {
	shape, skip := &v.in.Shapes[id], uint32(0)
	constants := v.layout.constants[v.shapes[id]]
	for i, pos := range p.positionsOf(id) {
		c := &v.in.Columns[pos.column]
		next := convertStep{column: pos.column, filter: unused, form: pos.form, role: roleOf(shape, c)}
		switch {
		case constants[i] != nil || pos.form == cellNothing:
			if n, fixed := pos.fixed(); fixed && next.role == noRole {
				skip += n
				continue
			}
		case pos.form == cellString && v.dictionaries[pos.column].exists():
			next.conversion = asWord
		case pos.form == cellString || pos.form == cellText:
			next.conversion = asText
			if column := v.columns[pos.column]; m.filters.covers(column) {
				next.filter = column
			}
		default:
			next.conversion = asNumber
			if column := v.columns[pos.column]; m.filters.covers(column) {
				next.conversion, next.filter = asInteger, column
			}
		}
		next.skip, skip = skip, 0
		m.steps = append(m.steps, next)
	}
	m.steps = append(m.steps, convertStep{skip: skip, filter: unused})
}

// fixed returns the encoded length of the cells at a position. ok is false if their lengths may
// differ.
func (p *position) fixed() (bytes uint32, ok bool) {
	switch {
	case p.form == cellNothing:
		return 0, true
	case p.form == cellByte:
		return 1, true
	case p.form == cellFixed:
		return 8, true
	}
	return uint32(p.length), p.state == sameBytes
}

// convert appends the varying cells of a row to dst and adds their values to the filters. b holds
// the encoded cells of the row; shape is the id of its shape in the input.
func (m *flushConverter) convert(dst []rows.Cell, shape uint32, b []byte) (cells []rows.Cell, texts rowTexts, err error) {
	c := cursor{b: b}
	steps := m.steps[m.first[shape]:m.first[shape+1]]
	for i := range steps {
		p := &steps[i]
		c.at += int(p.skip)
		if p.role != noRole {
			ahead := c
			if text := m.text(p, &ahead); p.role == nameRole {
				texts.name = text
			} else {
				texts.traceState = text
			}
		}
		switch p.conversion {
		case drop:
			c.pass(p.form)
		case asNumber:
			dst = append(dst, rows.Cell{Num: c.number(p.form)})
		case asInteger:
			n := c.number(p.form)
			m.filters.addInteger(p.filter, n)
			dst = append(dst, rows.Cell{Num: n})
		case asText:
			text := m.text(p, &c)
			if p.filter != unused {
				m.filters.add(p.filter, text)
			}
			dst = append(dst, rows.Cell{Data: text})
		default:
			rank, ok := m.dictionaries[p.column].read(&c)
			if !ok {
				return dst, rowTexts{}, fmt.Errorf("BUG: first pass did not count a text in column %d", p.column)
			}
			dst = append(dst, rows.Cell{Word: rank + 1})
		}
	}
	if !c.done() {
		return dst, rowTexts{}, fmt.Errorf("BUG: row of shape %d changed between the two passes", shape)
	}
	return dst, texts, nil
}

// text decodes a text of a string column or another column.
func (m *flushConverter) text(p *convertStep, c *cursor) string {
	if p.form == cellText {
		return c.text()
	}
	if word := c.uvarint(); word > 0 {
		return m.words[p.column][word-1]
	}
	return c.text()
}
