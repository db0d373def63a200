package segment

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// analyzer examines all rows once, in any order, and determines what they have in common: which
// cells are constant for a shape (equal in all its rows), and which texts repeat.
type analyzer struct {
	in         *rows.Tables
	first      []int // by shape: index of its first position
	positions  []position
	cells      []rows.Cell   // by position: cell of the first row of the shape
	shapes     []uint32      // by shape: number of rows
	resources  []uint32      // by resource: number of rows
	columns    []textCounter // by column
	textBudget int           // number of further distinct texts that may be counted
	maxTexts   int           // maximum number of distinct texts of a dictionary
	copyTexts  bool          // texts of rows are not valid after add and must be copied
	scratch    []rows.Cell
	encoded    []byte
}

// position is the state of one of Shape.Columns. It is considered constant until a row differs. It
// is small because all positions of a shape are read for each row.
type position struct {
	column uint32
	bytes  uint32 // for sameBytes: the encoded cell, the first byte lowest
	length uint8  // for sameBytes: length of the encoded cell
	form   cellForm
	state  state
}

// maxSameBytes is the maximum length of an encoded cell that is compared in encoded form.
const maxSameBytes = 4

// matches reports whether the encoded cell of sameBytes is at a position of b.
func (p *position) matches(b []byte, at int) bool {
	if at > len(b)-maxSameBytes {
		return p.matchesAtEnd(b, at)
	}
	return p.equals(binary.LittleEndian.Uint32(b[at:]))
}

// equals compares the lowest bytes with the encoded cell.
func (p *position) equals(bytes uint32) bool { return (bytes^p.bytes)<<(32-8*p.length) == 0 }

// matchesAtEnd is like matches, for positions near the end of b.
func (p *position) matchesAtEnd(b []byte, at int) bool {
	if at > len(b)-int(p.length) {
		return false
	}
	var rest [maxSameBytes]byte
	copy(rest[:], b[at:])
	return p.equals(binary.LittleEndian.Uint32(rest[:]))
}

// state is the state of a position.
type state uint8

const (
	sameBytes state = iota // all rows have the cell of the first one, in the same encoding
	sameCell               // all rows have the cell of the first one
	counting               // rows differ, and their texts are counted
	varies                 // rows differ
)

func (p *position) varies() bool { return p.state >= counting }

func newAnalyzer(t *rows.Tables) *analyzer {
	p := &analyzer{in: t, first: make([]int, len(t.Shapes)), shapes: make([]uint32, len(t.Shapes)),
		resources: make([]uint32, len(t.Resources)), columns: make([]textCounter, len(t.Columns)),
		textBudget: maxCounted, maxTexts: maxDictionary}
	n := 0
	for i := range t.Shapes {
		p.first[i] = n
		n += len(t.Shapes[i].Columns)
	}
	p.positions, p.cells = make([]position, 0, n), make([]rows.Cell, n)
	for i := range t.Shapes {
		for _, id := range t.Shapes[i].Columns {
			p.positions = append(p.positions, position{column: id, form: cellFormOf(t.Columns[id].Kind)})
		}
	}
	for i := range t.Columns {
		p.columns[i].stopped = t.Columns[i].Kind != otlpdata.ValueString
	}
	return p
}

func (p *analyzer) positionsOf(shape uint32) []position {
	return p.positions[p.first[shape]:][:len(p.in.Shapes[shape].Columns)]
}

func (p *analyzer) cellsOf(shape uint32) []rows.Cell {
	return p.cells[p.first[shape]:][:len(p.in.Shapes[shape].Columns)]
}

// add examines the encoded cells of a row. It returns the number of cells, and whether the row is
// readable. Part of an unreadable row may be counted: a dictionary then has an unnecessary word, or
// a position is not considered constant.
func (p *analyzer) add(h *rows.Head, b []byte) (cells int, ok bool) {
	positions := p.positionsOf(h.Shape)
	if p.shapes[h.Shape] == 0 {
		ok = p.addFirst(h.Shape, positions, b)
	} else {
		c := cursor{b: b}
		for i := range positions {
			pos := &positions[i]
			switch {
			case pos.state == sameBytes && pos.matches(b, c.at):
				c.at += int(pos.length)
			case pos.state == counting && p.columns[pos.column].countKnown(&c):
			case pos.state == varies:
				if word := c.pass(pos.form); word > 0 && word > uint64(len(p.in.Words[pos.column])) {
					return 0, false
				}
			case !p.examineNext(h.Shape, i, &c):
				return 0, false
			}
		}
		ok = c.done()
	}
	if ok {
		p.shapes[h.Shape]++
		p.resources[h.Resource]++
	}
	return len(positions), ok
}

// addFirst examines the first row of a shape.
func (p *analyzer) addFirst(shape uint32, positions []position, b []byte) bool {
	cells, err := p.in.ReadCells(b, p.in.Shapes[shape].Columns, p.scratch[:0])
	if p.scratch = cells; err != nil {
		return false
	}
	copy(p.cellsOf(shape), cells)
	for i := range positions {
		switch pos := &positions[i]; {
		case isEncoded(p.in.Columns[pos.column].Place):
			pos.state = varies
		default:
			p.assumeConstant(pos, cells[i])
		}
	}
	return true
}

// assumeConstant sets the state of a position for the first cell.
func (p *analyzer) assumeConstant(pos *position, c rows.Cell) {
	pos.state = sameCell
	if p.encoded = rows.AppendCell(p.encoded[:0], p.in.Columns[pos.column].Kind, c); len(p.encoded) <= maxSameBytes {
		var b [maxSameBytes]byte
		copy(b[:], p.encoded)
		pos.state, pos.bytes, pos.length = sameBytes, binary.LittleEndian.Uint32(b[:]), uint8(len(p.encoded))
	}
}

// examineNext decodes and examines the next cell. Its position must not be in state varies.
func (p *analyzer) examineNext(shape uint32, i int, c *cursor) bool {
	cell, ok := p.cell(&p.positions[p.first[shape]+i], c)
	if ok {
		p.examine(shape, i, cell)
	}
	return ok
}

// examine examines a cell. Its position must not be in state varies.
func (p *analyzer) examine(shape uint32, i int, cell rows.Cell) {
	pos := p.compare(shape, i, cell)
	if pos.state == counting {
		p.count(pos.column, cell, 1)
		if p.columns[pos.column].stopped {
			pos.state = varies
		}
	}
}

// compare updates the state of a position that was constant so far.
func (p *analyzer) compare(shape uint32, i int, cell rows.Cell) *position {
	at := p.first[shape] + i
	pos := &p.positions[at]
	switch {
	case pos.varies():
	case p.same(pos.column, p.cells[at], cell):
		pos.state = sameCell
	default:
		p.markVarying(pos, p.cells[at], p.shapes[shape])
	}
	return pos
}

// cell decodes a cell.
func (p *analyzer) cell(pos *position, c *cursor) (cell rows.Cell, ok bool) {
	switch pos.form {
	case cellNothing:
	case cellString:
		word := c.uvarint()
		if word > uint64(len(p.in.Words[pos.column])) {
			return cell, false
		}
		if cell.Word = uint32(word); word == 0 {
			cell.Data = c.text()
		}
	case cellText:
		cell.Data = c.text()
	default:
		cell.Num = c.number(pos.form)
	}
	return cell, c.at <= len(c.b)
}

// markVarying marks a position as not constant after n rows with the same cell.
func (p *analyzer) markVarying(pos *position, c rows.Cell, n uint32) {
	if pos.state = varies; !p.columns[pos.column].stopped {
		pos.state = counting
		p.count(pos.column, c, n)
	}
}

// isEncoded reports whether a place holds attributes in encoded form. Their positions are never
// constant, so that filters cover all of these attributes.
func isEncoded(p rows.Place) bool { return p == rows.Extra || p == rows.Events || p == rows.Links }

func (p *analyzer) same(column uint32, a, b rows.Cell) bool {
	return a == b || (a.Word > 0 || b.Word > 0) && p.in.Text(column, a) == p.in.Text(column, b)
}

// count counts n cells with the text of c.
func (p *analyzer) count(column uint32, c rows.Cell, n uint32) {
	s := &p.columns[column]
	if s.stopped {
		return
	}
	at := s.find(c)
	if at < 0 {
		if at = p.addText(s, column, c); at < 0 {
			return
		}
	}
	s.counts[at] += n
	s.total += int(n)
}

// addText adds the text of c, which find did not find, and returns its index, or -1 if a limit is
// reached.
func (p *analyzer) addText(s *textCounter, column uint32, c rows.Cell) int {
	text := p.in.Text(column, c)
	at, ok := s.index[text]
	if !ok {
		if len(s.texts) == p.maxTexts || p.textBudget == 0 {
			p.textBudget += len(s.texts)
			*s = textCounter{stopped: true}
			return -1
		}
		if s.index == nil {
			s.index = map[string]uint32{}
		}
		if p.copyTexts && c.Word == 0 {
			text = strings.Clone(text)
		}
		p.textBudget--
		at = uint32(len(s.texts))
		s.index[text] = at
		s.texts, s.counts = append(s.texts, text), append(s.counts, 0)
	}
	if c.Word > 0 {
		if int(c.Word) > len(s.byWord) {
			s.byWord = append(s.byWord, make([]uint32, max(int(c.Word), len(p.in.Words[column]))-len(s.byWord))...)
		}
		s.byWord[c.Word-1] = at + 1
	}
	return int(at)
}

// finish completes the counts after the last row. The cells of rare shapes are not stored as
// constants.
func (p *analyzer) finish() {
	for shape, n := range p.shapes {
		if n == 0 || n >= minConstantRows {
			continue
		}
		for i, cell := range p.cellsOf(uint32(shape)) {
			if pos := &p.positionsOf(uint32(shape))[i]; !pos.varies() {
				p.markVarying(pos, cell, n)
			}
		}
	}
}

// ranked returns the indexes of non-zero counts by descending count.
func ranked(counts []uint32) []uint32 {
	var order []uint32
	for i, n := range counts {
		if n > 0 {
			order = append(order, uint32(i))
		}
	}
	slices.SortStableFunc(order, func(a, b uint32) int { return cmp.Compare(counts[b], counts[a]) })
	return order
}
