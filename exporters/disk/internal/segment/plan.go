package segment

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// planner looks at all rows once, in any order, and finds out what they share: which cells are constant for a shape, which texts repeat.
type planner struct {
	in        *rows.Tables
	first     []int // by shape: index of its first position
	positions []position
	cells     []rows.Cell // by position: that of the shape's first row
	shapes    []uint32    // by shape: rows
	resources []uint32    // by resource: rows
	columns   []census    // by column
	room      int         // how many more distinct texts may be remembered
	largest   int         // how many distinct texts a dictionary has at most
	borrowed  bool        // rows are gone after add: what is kept of them is copied
	scratch   []rows.Cell
	encoded   []byte
}

// position is one of Shape.Columns. It is constant until a row proves otherwise. It is small because all of a shape are read for each row.
type position struct {
	column uint32
	bytes  uint32 // of sameBytes: the cell as it is written, the first byte lowest
	length uint8  // of sameBytes
	form   cellForm
	state  state
}

// maxSameBytes is the length of the longest cell that is compared as it is written.
const maxSameBytes = 4

// has reports whether the cell of sameBytes stands at a place of b.
func (p *position) has(b []byte, at int) bool {
	if at > len(b)-maxSameBytes {
		return p.ends(b, at)
	}
	return p.same(binary.LittleEndian.Uint32(b[at:]))
}

// same reports whether the lowest bytes are those of the cell.
func (p *position) same(bytes uint32) bool { return (bytes^p.bytes)<<(32-8*p.length) == 0 }

// ends is has near the end of b.
func (p *position) ends(b []byte, at int) bool {
	if at > len(b)-int(p.length) {
		return false
	}
	var rest [maxSameBytes]byte
	copy(rest[:], b[at:])
	return p.same(binary.LittleEndian.Uint32(rest[:]))
}

// state is what is known of a position.
type state uint8

const (
	sameBytes state = iota // all rows have the cell of the first one, written alike
	sameCell               // all rows have the cell of the first one
	counts                 // rows differ, and their texts are counted
	varies                 // rows differ
)

func (p *position) varies() bool { return p.state >= counts }

// census counts the distinct texts of the varying cells of a string column, until they are too many.
type census struct {
	off    bool     // not a string column, or too many texts
	word   []uint32 // by word of the input: 1 + index of the text; 0: not met
	index  map[string]uint32
	texts  []string
	counts []uint32
	total  int
}

func newPlanner(t *rows.Tables) *planner {
	p := &planner{in: t, first: make([]int, len(t.Shapes)), shapes: make([]uint32, len(t.Shapes)),
		resources: make([]uint32, len(t.Resources)), columns: make([]census, len(t.Columns)), room: maxCounted, largest: maxDictionary}
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
		p.columns[i].off = t.Columns[i].Kind != otlpdata.ValueString
	}
	return p
}

func (p *planner) positionsOf(shape uint32) []position {
	return p.positions[p.first[shape]:][:len(p.in.Shapes[shape].Columns)]
}

func (p *planner) cellsOf(shape uint32) []rows.Cell {
	return p.cells[p.first[shape]:][:len(p.in.Shapes[shape].Columns)]
}

// add looks at the cells b of a row. It returns how many they are, and whether they can be read. Some of those that cannot may be counted:
// a column then has a word too many, or a position no constant.
func (p *planner) add(h *rows.Head, b []byte) (cells int, ok bool) {
	positions := p.positionsOf(h.Shape)
	if p.shapes[h.Shape] == 0 {
		ok = p.begin(h.Shape, positions, b)
	} else {
		c := cursor{b: b}
		for i := range positions {
			pos := &positions[i]
			switch {
			case pos.state == sameBytes && pos.has(b, c.at):
				c.at += int(pos.length)
			case pos.state == counts && p.columns[pos.column].countKnown(&c):
			case pos.state == varies:
				if word := c.pass(pos.form); word > 0 && word > uint64(len(p.in.Words[pos.column])) {
					return 0, false
				}
			case !p.look(h.Shape, i, &c):
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

// begin looks at the first row of a shape.
func (p *planner) begin(shape uint32, positions []position, b []byte) bool {
	cells, err := p.in.ReadCells(b, p.in.Shapes[shape].Columns, p.scratch[:0])
	if p.scratch = cells; err != nil {
		return false
	}
	copy(p.cellsOf(shape), cells)
	for i := range positions {
		switch pos := &positions[i]; {
		case isBlob(p.in.Columns[pos.column].Place):
			pos.state = varies
		default:
			p.hold(pos, cells[i])
		}
	}
	return true
}

// hold notes that a position has been the same so far.
func (p *planner) hold(pos *position, c rows.Cell) {
	pos.state = sameCell
	if p.encoded = rows.AppendCell(p.encoded[:0], p.in.Columns[pos.column].Kind, c); len(p.encoded) <= maxSameBytes {
		var b [maxSameBytes]byte
		copy(b[:], p.encoded)
		pos.state, pos.bytes, pos.length = sameBytes, binary.LittleEndian.Uint32(b[:]), uint8(len(p.encoded))
	}
}

// look reads the next cell, which is at a position that may be constant or is counted.
func (p *planner) look(shape uint32, i int, c *cursor) bool {
	cell, ok := p.cell(&p.positions[p.first[shape]+i], c)
	if ok {
		p.see(shape, i, cell)
	}
	return ok
}

// see looks at a cell at a position that may be constant or is counted.
func (p *planner) see(shape uint32, i int, cell rows.Cell) {
	pos := p.compare(shape, i, cell)
	if pos.state == counts {
		p.count(pos.column, cell, 1)
		if p.columns[pos.column].off {
			pos.state = varies
		}
	}
}

// compare notes that a position is not constant if the cell differs from that of the rows before.
func (p *planner) compare(shape uint32, i int, cell rows.Cell) *position {
	at := p.first[shape] + i
	pos := &p.positions[at]
	switch {
	case pos.varies():
	case p.same(pos.column, p.cells[at], cell):
		pos.state = sameCell
	default:
		p.vary(pos, p.cells[at], p.shapes[shape])
	}
	return pos
}

// cell reads a cell.
func (p *planner) cell(pos *position, c *cursor) (cell rows.Cell, ok bool) {
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

// vary notes that a position is not constant, though n rows had the same cell.
func (p *planner) vary(pos *position, c rows.Cell, n uint32) {
	if pos.state = varies; !p.columns[pos.column].off {
		pos.state = counts
		p.count(pos.column, c, n)
	}
}

// isBlob tells the places that hold attributes in encoded form. They are never constant, so that filters cover all that is in them.
func isBlob(p rows.Place) bool { return p == rows.Extra || p == rows.Events || p == rows.Links }

func (p *planner) same(column uint32, a, b rows.Cell) bool {
	return a == b || (a.Word > 0 || b.Word > 0) && p.in.Text(column, a) == p.in.Text(column, b)
}

// count counts n cells with the text of c.
func (p *planner) count(column uint32, c rows.Cell, n uint32) {
	s := &p.columns[column]
	if s.off {
		return
	}
	at := s.find(c)
	if at < 0 {
		if at = p.meet(s, column, c); at < 0 {
			return
		}
	}
	s.counts[at] += n
	s.total += int(n)
}

// countKnown counts the next cell if it is a word that was counted before. Else the cursor stays where it is.
func (s *census) countKnown(c *cursor) bool {
	from := c.at
	word := c.uvarint()
	if word-1 < uint64(len(s.word)) && s.word[word-1] > 0 {
		s.counts[s.word[word-1]-1]++
		s.total++
		return true
	}
	c.at = from
	return false
}

// find returns the index of a text; -1 if it is new, as a word at least.
func (s *census) find(c rows.Cell) int {
	if c.Word > 0 {
		if int(c.Word) <= len(s.word) {
			return int(s.word[c.Word-1]) - 1
		}
		return -1
	}
	if at, ok := s.index[c.Data]; ok {
		return int(at)
	}
	return -1
}

// meet returns the index of a text that find did not find, -1 if there is no room for it.
func (p *planner) meet(s *census, column uint32, c rows.Cell) int {
	text := p.in.Text(column, c)
	at, ok := s.index[text]
	if !ok {
		if len(s.texts) == p.largest || p.room == 0 {
			p.room += len(s.texts)
			*s = census{off: true}
			return -1
		}
		if s.index == nil {
			s.index = map[string]uint32{}
		}
		if p.borrowed && c.Word == 0 {
			text = strings.Clone(text)
		}
		p.room--
		at = uint32(len(s.texts))
		s.index[text] = at
		s.texts, s.counts = append(s.texts, text), append(s.counts, 0)
	}
	if c.Word > 0 {
		if int(c.Word) > len(s.word) {
			s.word = append(s.word, make([]uint32, max(int(c.Word), len(p.in.Words[column]))-len(s.word))...)
		}
		s.word[c.Word-1] = at + 1
	}
	return int(at)
}

// finish completes the counts: rare shapes have no constants.
func (p *planner) finish() {
	for shape, n := range p.shapes {
		if n == 0 || n >= minConstantRows {
			continue
		}
		for i, cell := range p.cellsOf(uint32(shape)) {
			if pos := &p.positionsOf(uint32(shape))[i]; !pos.varies() {
				p.vary(pos, cell, n)
			}
		}
	}
}

// dictionary returns the texts of a column, the most frequent first, if they are worth a dictionary, and the rank of each index.
func (s *census) dictionary() (texts []string, ranks []uint32, ok bool) {
	if s.off || s.total < minRepeats*len(s.texts) || len(s.texts) == 0 {
		return nil, nil, false
	}
	order := ranked(s.counts)
	ranks = make([]uint32, len(order))
	for rank, at := range order {
		texts = append(texts, s.texts[at])
		ranks[at] = uint32(rank)
	}
	return texts, ranks, true
}

// ranked returns the indexes of counts that are not zero, the greatest first.
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
