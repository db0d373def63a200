package segment

import (
	"cmp"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// planner looks at all rows once, in any order, and finds out what they share: which cells are constant for a shape, which texts repeat.
type planner struct {
	in        *rows.Tables
	first     []int // by shape: index of its first position
	positions []position
	shapes    []uint32 // by shape: rows
	resources []uint32 // by resource: rows
	columns   []census // by column
	room      int      // how many more distinct texts may be remembered
}

// position is one of Shape.Columns. It is constant until a row proves otherwise.
type position struct {
	varies bool
	cell   rows.Cell // of the shape's first row
}

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
		resources: make([]uint32, len(t.Resources)), columns: make([]census, len(t.Columns)), room: maxCounted}
	n := 0
	for i := range t.Shapes {
		p.first[i] = n
		n += len(t.Shapes[i].Columns)
	}
	p.positions = make([]position, n)
	for i := range t.Columns {
		p.columns[i].off = t.Columns[i].Kind != otlpdata.ValueString
	}
	return p
}

func (p *planner) positionsOf(shape uint32) []position {
	return p.positions[p.first[shape]:][:len(p.in.Shapes[shape].Columns)]
}

// add looks at a row.
func (p *planner) add(h *rows.Head, cells []rows.Cell) {
	before := p.shapes[h.Shape]
	p.shapes[h.Shape]++
	p.resources[h.Resource]++
	columns := p.in.Shapes[h.Shape].Columns
	positions := p.positionsOf(h.Shape)
	for i := range cells {
		pos := &positions[i]
		if before == 0 {
			pos.cell, pos.varies = cells[i], isBlob(p.in.Columns[columns[i]].Place)
			continue
		}
		if !pos.varies {
			if p.same(columns[i], pos.cell, cells[i]) {
				continue
			}
			pos.varies = true
			p.count(columns[i], pos.cell, before)
		}
		p.count(columns[i], cells[i], 1)
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
		if len(s.texts) == maxDictionary || p.room == 0 {
			p.room += len(s.texts)
			*s = census{off: true}
			return -1
		}
		if s.index == nil {
			s.index = map[string]uint32{}
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
		for i, column := range p.in.Shapes[shape].Columns {
			pos := &p.positionsOf(uint32(shape))[i]
			if !pos.varies {
				pos.varies = true
				p.count(column, pos.cell, n)
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
