package segment

import (
	"fmt"
	"hash/maphash"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
)

// cellMover turns rows of an input of a merge into rows of the segment.
type cellMover struct {
	input     *input
	resources []uint32 // by resource of the input
	shapes    []shapeMove
	moves     []cellMove
	constants []rows.Cell // of the input, where the segment has none
	words     [][]string  // by column of the union
	ranks     []ranks     // by column of the union
	known     [][]uint32  // by column of the union, which is a dictionary, and word of the input: 1 + rank
}

// shapeMove is a shape of the segment, and which moves make its cells.
type shapeMove struct {
	shape       uint32
	first, last uint32 // moves
	varying     uint32 // how many cells vary in the input
	positions   uint32 // how many cells there are
}

// cellMove says where a cell of the segment comes from, and what it becomes.
type cellMove struct {
	position int32  // in the shape
	from     int32  // which of the cells that vary in the input it is; -1 - which of the constants, if it is one
	column   uint32 // of the union
	how      how
}

// newCellMover makes the mover of an input.
func newCellMover(in *input, union *rows.Tables, v *vocabulary) *cellMover {
	m := &cellMover{input: in, resources: make([]uint32, len(in.resources)), shapes: make([]shapeMove, len(in.shapes)),
		words: union.Words, ranks: v.ranks, known: make([][]uint32, len(in.words))}
	for i, id := range in.resources {
		m.resources[i] = v.resources[id]
	}
	for id := range in.shapes {
		s := &m.shapes[id]
		s.first = uint32(len(m.moves))
		if s.shape = v.shapes[in.shapes[id]]; s.shape != unused {
			m.plan(uint32(id), union, v)
		}
		s.last = uint32(len(m.moves))
	}
	return m
}

func (m *cellMover) plan(id uint32, union *rows.Tables, v *vocabulary) {
	constants := v.layout.constants[v.shapes[m.input.shapes[id]]]
	ordinal := int32(0)
	for i, column := range union.Shapes[m.input.shapes[id]].Columns {
		next := cellMove{position: int32(i), from: ordinal, column: column, how: asNumber}
		c, constant := m.input.Constant(id, i)
		if !constant {
			ordinal++
		}
		form := cellFormOf(union.Columns[column].Kind)
		if constants[i] != nil || form == cellNothing {
			continue
		}
		if constant {
			next.from = -1 - int32(len(m.constants))
			m.constants = append(m.constants, c)
		}
		switch {
		case form == cellString && v.ranks[column].known():
			next.how = asWord
			m.learn(column)
		case form == cellString || form == cellText:
			next.how = asText
		}
		m.moves = append(m.moves, next)
	}
	s := &m.shapes[id]
	s.varying, s.positions = uint32(ordinal), uint32(len(constants))
}

// learn notes the ranks of the input's words of a column.
func (m *cellMover) learn(column uint32) {
	if int(column) >= len(m.input.words) || m.known[column] != nil {
		return
	}
	known := make([]uint32, len(m.input.words[column]))
	for i, word := range m.input.words[column] {
		known[i] = m.ranks[column].words[word]
	}
	m.known[column] = known
}

// move makes a head one of the segment, and appends its cells: made of all cells of the row, or of those that vary in the input. It returns
// about how many bytes they take.
func (m *cellMover) move(dst []rows.Cell, h *rows.Head, cells []rows.Cell, all bool) (moved []rows.Cell, bytes int, err error) {
	s := &m.shapes[h.Shape]
	if s.shape == unused {
		return dst, 0, fmt.Errorf("BUG: no row of shape %d of %s was seen", h.Shape, m.input.Name())
	}
	if n := uint32(len(cells)); all && n != s.positions || !all && n != s.varying {
		return dst, 0, m.mismatch()
	}
	h.Shape, h.Resource = s.shape, m.resources[h.Resource]
	moves := m.moves[s.first:s.last]
	bytes = headBytes + 2*len(moves)
	for i := range moves {
		p := &moves[i]
		var c rows.Cell
		switch {
		case all:
			c = cells[p.position]
		case p.from < 0:
			c = m.constants[-1-p.from]
		default:
			c = cells[p.from]
		}
		switch p.how {
		case asText:
			if c.Word > 0 {
				c = rows.Cell{Data: m.words[p.column][m.input.words[p.column][c.Word-1]]}
			}
			bytes += len(c.Data)
		case asWord:
			if c = m.word(p.column, c); c.Word == 0 {
				return dst, 0, fmt.Errorf("BUG: a text of column %d of %s was not counted", p.column, m.input.Name())
			}
		}
		dst = append(dst, c)
	}
	return dst, bytes, nil
}

// mismatch is the error for a row that has not the cells that it should have. When the input could not be read for a moment, it knew of no
// constants.
func (m *cellMover) mismatch() error {
	if _, err := m.input.Tables(); err != nil {
		return err
	}
	return fmt.Errorf("what is constant in %s could not be read", m.input.Name())
}

// word returns the word of the segment for a text of a dictionary column; 0 if it has none.
func (m *cellMover) word(column uint32, c rows.Cell) rows.Cell {
	if c.Word > 0 {
		return rows.Cell{Word: m.known[column][c.Word-1]}
	}
	r := &m.ranks[column]
	return rows.Cell{Word: r.slot(maphash.String(r.seed, c.Data)).rank}
}

// rowFilters gives the cells of rows of the segment to the filters, and finds what statistics have to know of them.
type rowFilters struct {
	stripes *stripes
	layout  *layout
	shapes  []filteredShape
	list    []filteredCell
}

// filteredShape is what a shape of the segment has for the filters: its cells from first on, up to those of the next shape.
type filteredShape struct {
	first            uint32
	name, traceState rowText
}

// rowText is where a text of the rows of a shape is.
type rowText struct {
	constant string // of all rows; "" where there is none
	varying  int32  // 1 + ordinal of the cell if it varies
	column   uint32 // of that cell
}

// filteredCell is a cell that filters have.
type filteredCell struct {
	ordinal uint32
	column  uint32 // of the segment
	integer bool
}

func newRowFilters(s *stripes, l *layout) *rowFilters {
	f := &rowFilters{stripes: s, layout: l, shapes: make([]filteredShape, len(l.tables.Shapes)+1)}
	for id := range l.tables.Shapes {
		f.shapes[id].first = uint32(len(f.list))
		f.plan(id)
	}
	f.shapes[len(l.tables.Shapes)].first = uint32(len(f.list))
	return f
}

func (f *rowFilters) plan(id int) {
	t, ordinal := f.layout.tables, uint32(0)
	shape, to := &t.Shapes[id], &f.shapes[id]
	for i, column := range shape.Columns {
		c := &t.Columns[column]
		form := cellFormOf(c.Kind)
		var text *rowText // nil: nobody has to know it
		switch saysOf(shape, c) {
		case saysName:
			text = &to.name
		case saysTraceState:
			text = &to.traceState
		}
		if constant := f.layout.constants[id][i]; constant != nil || form == cellNothing {
			if text != nil && constant != nil {
				text.constant = t.Text(column, *constant)
			}
			continue
		}
		if text != nil {
			text.varying, text.column = int32(ordinal)+1, column
		}
		switch {
		case !f.stripes.filters(column) || form == cellString && f.layout.dictionary[column]:
		case form == cellString || form == cellText:
			f.list = append(f.list, filteredCell{ordinal, column, false})
		default:
			f.list = append(f.list, filteredCell{ordinal, column, true})
		}
		ordinal++
	}
}

// take gives the cells of a row to the filters. It returns what all cells say.
func (f *rowFilters) take(shape uint32, cells []rows.Cell) said {
	s := &f.shapes[shape]
	for i := s.first; i < f.shapes[shape+1].first; i++ {
		p := &f.list[i]
		if c := &cells[p.ordinal]; p.integer {
			f.stripes.addInteger(p.column, c.Num)
		} else {
			f.stripes.add(p.column, c.Data)
		}
	}
	return said{f.text(&s.name, cells), f.text(&s.traceState, cells)}
}

func (f *rowFilters) text(t *rowText, cells []rows.Cell) string {
	if t.varying == 0 {
		return t.constant
	}
	return f.layout.tables.Text(t.column, cells[t.varying-1])
}
