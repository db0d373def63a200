package segment

import (
	"fmt"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// move says what becomes of a cell of the input, and how many bytes before it are cells that are dropped. Those of a shape are in the order
// of its columns; the last one is the end of the row.
type move struct {
	column uint32 // of the input
	skip   uint32
	filter uint32 // column of the segment whose text goes into the filter, or unused
	form   cellForm
	how    how
	says   says
}

// says tells what statistics have to know of a cell.
type says uint8

const (
	saysNothing says = iota
	saysName
	saysTraceState
)

// saysOf tells what a cell of a column says of the spans of a shape.
func saysOf(s *rows.Shape, c *rows.Column) says {
	switch {
	case s.NameInRow && c.Place == rows.Name:
		return saysName
	case c.Place == rows.TraceState && c.Kind == otlpdata.ValueString:
		return saysTraceState
	}
	return saysNothing
}

// said is what stands in a row of what statistics have to know.
type said struct {
	name       string // "" where it stands in the shape
	traceState string
}

// how says what is done with a cell.
type how uint8

const (
	drop      how = iota // it is constant
	asNumber             // kept as it is
	asInteger            // kept as it is, and given to the filter
	asText               // a text; a word becomes the text that it stands for
	asWord               // a text becomes a word of the segment
)

// mover turns rows of the input into rows of the segment.
type mover struct {
	stripes *stripes   // takes the texts that are moved
	words   [][]string // by column of the input
	ranks   []ranks    // by column of the input
	first   []int      // by shape of the input: index of its first move
	moves   []move
}

func newMover(v *vocabulary, p *planner, s *stripes) *mover {
	m := &mover{stripes: s, words: v.in.Words, ranks: v.ranks, first: make([]int, len(v.in.Shapes)+1)}
	for id := range v.in.Shapes {
		m.first[id] = len(m.moves)
		if p.shapes[id] > 0 {
			m.plan(v, p, uint32(id))
		}
	}
	m.first[len(v.in.Shapes)] = len(m.moves)
	return m
}

func (m *mover) plan(v *vocabulary, p *planner, id uint32) {
	shape, skip := &v.in.Shapes[id], uint32(0)
	constants := v.layout.constants[v.shapes[id]]
	for i, pos := range p.positionsOf(id) {
		c := &v.in.Columns[pos.column]
		next := move{column: pos.column, filter: unused, form: pos.form, says: saysOf(shape, c)}
		switch {
		case constants[i] != nil || pos.form == cellNothing:
			if n, fixed := pos.fixed(); fixed && next.says == saysNothing {
				skip += n
				continue
			}
		case pos.form == cellString && v.ranks[pos.column].known():
			next.how = asWord
		case pos.form == cellString || pos.form == cellText:
			next.how = asText
			if column := v.columns[pos.column]; m.stripes.filters(column) {
				next.filter = column
			}
		default:
			next.how = asNumber
			if column := v.columns[pos.column]; m.stripes.filters(column) {
				next.how, next.filter = asInteger, column
			}
		}
		next.skip, skip = skip, 0
		m.moves = append(m.moves, next)
	}
	m.moves = append(m.moves, move{skip: skip, filter: unused})
}

// fixed returns how many bytes each cell of a position takes, if they take the same.
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

// move appends the cells of a row that vary, which come as b and are those of a shape of the input, and gives texts to the filter. It
// returns what all cells say.
func (m *mover) move(dst []rows.Cell, shape uint32, b []byte) (cells []rows.Cell, all said, err error) {
	c := cursor{b: b}
	moves := m.moves[m.first[shape]:m.first[shape+1]]
	for i := range moves {
		p := &moves[i]
		c.at += int(p.skip)
		if p.says != saysNothing {
			ahead := c
			if text := m.text(p, &ahead); p.says == saysName {
				all.name = text
			} else {
				all.traceState = text
			}
		}
		switch p.how {
		case drop:
			c.pass(p.form)
		case asNumber:
			dst = append(dst, rows.Cell{Num: c.number(p.form)})
		case asInteger:
			n := c.number(p.form)
			m.stripes.addInteger(p.filter, n)
			dst = append(dst, rows.Cell{Num: n})
		case asText:
			text := m.text(p, &c)
			if p.filter != unused {
				m.stripes.add(p.filter, text)
			}
			dst = append(dst, rows.Cell{Data: text})
		default:
			rank, ok := m.ranks[p.column].read(&c)
			if !ok {
				return dst, said{}, fmt.Errorf("BUG: a text of column %d was not counted", p.column)
			}
			dst = append(dst, rows.Cell{Word: rank + 1})
		}
	}
	if !c.done() {
		return dst, said{}, fmt.Errorf("BUG: a row of shape %d is not what it was", shape)
	}
	return dst, all, nil
}

// text reads a text, of a string column or another one.
func (m *mover) text(p *move, c *cursor) string {
	if p.form == cellText {
		return c.text()
	}
	if word := c.uvarint(); word > 0 {
		return m.words[p.column][word-1]
	}
	return c.text()
}
