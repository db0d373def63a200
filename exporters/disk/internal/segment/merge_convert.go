package segment

import (
	"fmt"
	"hash/maphash"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
)

// mergeConverter converts rows of an input of a merge to rows of the segment.
type mergeConverter struct {
	input        *input
	resources    []uint32 // by resource of the input
	shapes       []shapeConversion
	steps        []cellConversion
	constants    []rows.Cell       // of the input, where the segment has none
	words        [][]string        // by column of the merged tables
	dictionaries []dictionaryIndex // by column of the merged tables
	wordMap      [][]uint32        // by column of the merged tables with a dictionary, and word of the input: 1 + rank
}

// shapeConversion is the conversion of the rows of a shape.
type shapeConversion struct {
	shape       uint32
	first, last uint32 // range of steps
	varying     uint32 // number of cells that vary in the input
	positions   uint32 // number of all cells
}

// cellConversion describes the source of a cell of the segment and its conversion.
type cellConversion struct {
	position   int32  // in the shape
	from       int32  // index among the varying cells of the input, or -1 - index among the constants
	column     uint32 // of the merged tables
	conversion conversion
}

// newMergeConverter returns the converter of an input.
func newMergeConverter(in *input, merged *rows.Tables, v *vocabulary) *mergeConverter {
	m := &mergeConverter{input: in, resources: make([]uint32, len(in.ids.Resources)), shapes: make([]shapeConversion, len(in.ids.Shapes)),
		words: merged.Words, dictionaries: v.dictionaries, wordMap: make([][]uint32, len(in.ids.Words))}
	for i, id := range in.ids.Resources {
		m.resources[i] = v.resources[id]
	}
	for id := range in.ids.Shapes {
		s := &m.shapes[id]
		s.first = uint32(len(m.steps))
		if s.shape = v.shapes[in.ids.Shapes[id]]; s.shape != unused {
			m.plan(uint32(id), merged, v)
		}
		s.last = uint32(len(m.steps))
	}
	return m
}

func (m *mergeConverter) plan(id uint32, merged *rows.Tables, v *vocabulary) {
	constants := v.layout.constants[v.shapes[m.input.ids.Shapes[id]]]
	ordinal := int32(0)
	for i, column := range merged.Shapes[m.input.ids.Shapes[id]].Columns {
		next := cellConversion{position: int32(i), from: ordinal, column: column, conversion: asNumber}
		c, constant := m.input.Constant(id, i)
		if !constant {
			ordinal++
		}
		form := cellFormOf(merged.Columns[column].Kind)
		if constants[i] != nil || form == cellNothing {
			continue
		}
		if constant {
			next.from = -1 - int32(len(m.constants))
			m.constants = append(m.constants, c)
		}
		switch {
		case form == cellString && v.dictionaries[column].exists():
			next.conversion = asWord
			m.mapWords(column)
		case form == cellString || form == cellText:
			next.conversion = asText
		}
		m.steps = append(m.steps, next)
	}
	s := &m.shapes[id]
	s.varying, s.positions = uint32(ordinal), uint32(len(constants))
}

// mapWords maps the words of the input in a column to their ranks.
func (m *mergeConverter) mapWords(column uint32) {
	if int(column) >= len(m.input.ids.Words) || m.wordMap[column] != nil {
		return
	}
	known := make([]uint32, len(m.input.ids.Words[column]))
	for i, word := range m.input.ids.Words[column] {
		known[i] = m.dictionaries[column].words[word]
	}
	m.wordMap[column] = known
}

// convert replaces the ids in a head by ids of the segment and appends the converted cells. cells
// holds all cells of the row, or only those that vary in the input. It returns the approximate size
// of the row in bytes.
func (m *mergeConverter) convert(dst []rows.Cell, h *rows.Head, cells []rows.Cell, all bool) (converted []rows.Cell, bytes int, err error) {
	s := &m.shapes[h.Shape]
	if s.shape == unused {
		return dst, 0, fmt.Errorf("BUG: %s has a row of shape %d that the first pass did not see", m.input.Name(), h.Shape)
	}
	if n := uint32(len(cells)); all && n != s.positions || !all && n != s.varying {
		return dst, 0, m.mismatch()
	}
	h.Shape, h.Resource = s.shape, m.resources[h.Resource]
	steps := m.steps[s.first:s.last]
	bytes = headBytes + 2*len(steps)
	for i := range steps {
		p := &steps[i]
		var c rows.Cell
		switch {
		case all:
			c = cells[p.position]
		case p.from < 0:
			c = m.constants[-1-p.from]
		default:
			c = cells[p.from]
		}
		switch p.conversion {
		case asText:
			if c.Word > 0 {
				c = rows.Cell{Data: m.words[p.column][m.input.ids.Words[p.column][c.Word-1]]}
			}
			bytes += len(c.Data)
		case asWord:
			if c = m.word(p.column, c); c.Word == 0 {
				return dst, 0, fmt.Errorf("BUG: first pass did not count a text in column %d of %s", p.column, m.input.Name())
			}
		}
		dst = append(dst, c)
	}
	return dst, bytes, nil
}

// mismatch returns the error for a row with an unexpected number of cells. A possible cause is an
// input that is temporarily unreadable and therefore reports no constants.
func (m *mergeConverter) mismatch() error {
	if _, err := m.input.Tables(); err != nil {
		return err
	}
	return fmt.Errorf("columns of %s with one value for all rows of a shape are temporarily unreadable", m.input.Name())
}

// word returns the word of the segment for a text of a dictionary column, or 0 if it has none.
func (m *mergeConverter) word(column uint32, c rows.Cell) rows.Cell {
	if c.Word > 0 {
		return rows.Cell{Word: m.wordMap[column][c.Word-1]}
	}
	r := &m.dictionaries[column]
	return rows.Cell{Word: r.slot(maphash.String(r.seed, c.Data)).rank}
}

// filterFeeder adds the cells of rows of the segment to the filters, and extracts the texts that
// statistics need.
type filterFeeder struct {
	filters *filterBuilder
	layout  *layout
	shapes  []feederShape
	list    []feederCell
}

// feederShape locates the cells of a shape for the filters: from its first cell up to the first
// cell of the next shape.
type feederShape struct {
	first            uint32
	name, traceState rowText
}

// rowText locates a text in the rows of a shape.
type rowText struct {
	constant string // if all rows have the same text
	varying  int32  // 1 + ordinal of the cell if it varies
	column   uint32 // of that cell
}

// feederCell is a cell whose value is added to the filters.
type feederCell struct {
	ordinal uint32
	column  uint32 // of the segment
	integer bool
}

func newFilterFeeder(s *filterBuilder, l *layout) *filterFeeder {
	f := &filterFeeder{filters: s, layout: l, shapes: make([]feederShape, len(l.tables.Shapes)+1)}
	for id := range l.tables.Shapes {
		f.shapes[id].first = uint32(len(f.list))
		f.plan(id)
	}
	f.shapes[len(l.tables.Shapes)].first = uint32(len(f.list))
	return f
}

func (f *filterFeeder) plan(id int) {
	t, ordinal := f.layout.tables, uint32(0)
	shape, to := &t.Shapes[id], &f.shapes[id]
	for i, column := range shape.Columns {
		c := &t.Columns[column]
		form := cellFormOf(c.Kind)
		var text *rowText // nil: not needed
		switch roleOf(shape, c) {
		case nameRole:
			text = &to.name
		case traceStateRole:
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
		case !f.filters.covers(column) || form == cellString && f.layout.dictionary[column]:
		case form == cellString || form == cellText:
			f.list = append(f.list, feederCell{ordinal, column, false})
		default:
			f.list = append(f.list, feederCell{ordinal, column, true})
		}
		ordinal++
	}
}

// add adds the cells of a row to the filters and returns its texts for statistics.
func (f *filterFeeder) add(shape uint32, cells []rows.Cell) rowTexts {
	s := &f.shapes[shape]
	for i := s.first; i < f.shapes[shape+1].first; i++ {
		p := &f.list[i]
		if c := &cells[p.ordinal]; p.integer {
			f.filters.addInteger(p.column, c.Num)
		} else {
			f.filters.add(p.column, c.Data)
		}
	}
	return rowTexts{f.text(&s.name, cells), f.text(&s.traceState, cells)}
}

func (f *filterFeeder) text(t *rowText, cells []rows.Cell) string {
	if t.varying == 0 {
		return t.constant
	}
	return f.layout.tables.Text(t.column, cells[t.varying-1])
}
