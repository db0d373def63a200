package segment

import (
	"fmt"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// vocabulary is the segment's own tables: only what its rows use, the most frequent first. It translates rows of the input.
type vocabulary struct {
	in     *rows.Tables
	layout *layout
	// From ids of the input; what no row uses has no meaning here.
	shapes, resources, scopes, columns []uint32
	words                              []wordMap   // by column of the input
	texts                              [][]varying // by shape of the input: its strings that vary
}

// varying is a position of a shape of the input.
type varying struct {
	position int
	column   uint32
}

// wordMap finds the words of a dictionary column.
type wordMap struct {
	census *census // nil: not a dictionary column
	ranks  []uint32
}

// newVocabulary makes the tables of what the planner saw.
func newVocabulary(p *planner) (*vocabulary, error) {
	v := &vocabulary{in: p.in, layout: &layout{tables: &rows.Tables{}}, shapes: make([]uint32, len(p.in.Shapes)),
		resources: make([]uint32, len(p.in.Resources)), words: make([]wordMap, len(p.in.Columns))}
	v.addResources(p)
	v.addShapes(p)
	v.addDictionaries(p)
	v.addConstants(p)
	if err := checkPositions(v.layout.tables); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	return v, v.layout.plan()
}

func (v *vocabulary) addResources(p *planner) {
	t := v.layout.tables
	for _, id := range ranked(p.resources) {
		v.resources[id] = uint32(len(t.Resources))
		t.Resources = append(t.Resources, v.in.Resources[id])
	}
}

// addShapes adds the shapes, and their scopes and columns in the order in which they are needed.
func (v *vocabulary) addShapes(p *planner) {
	t := v.layout.tables
	v.scopes, v.columns = make([]uint32, len(v.in.Scopes)), make([]uint32, len(v.in.Columns))
	for i := range v.scopes {
		v.scopes[i] = unused
	}
	for i := range v.columns {
		v.columns[i] = unused
	}
	for _, id := range ranked(p.shapes) {
		old := &v.in.Shapes[id]
		s := rows.Shape{Tenant: old.Tenant, Service: old.Service, Name: old.Name, NameInRow: old.NameInRow, Kind: old.Kind, Status: old.Status}
		s.Scope = take(v.scopes, old.Scope, &t.Scopes, v.in.Scopes)
		for _, c := range old.Columns {
			s.Columns = append(s.Columns, take(v.columns, c, &t.Columns, v.in.Columns))
		}
		v.shapes[id] = uint32(len(t.Shapes))
		t.Shapes = append(t.Shapes, s)
	}
	t.Words = make([][]string, len(t.Columns))
}

const unused = 1<<32 - 1

// take returns the new id of what has the given id in old, and adds it to table if it has none.
func take[T any](ids []uint32, id uint32, table *[]T, old []T) uint32 {
	if ids[id] == unused {
		ids[id] = uint32(len(*table))
		*table = append(*table, old[id])
	}
	return ids[id]
}

func (v *vocabulary) addDictionaries(p *planner) {
	l := v.layout
	l.words = make([]int, len(l.tables.Columns))
	l.dictionary = make([]bool, len(l.tables.Columns))
	for old, id := range v.columns {
		s := &p.columns[old]
		if texts, ranks, ok := s.dictionary(); ok && id != unused {
			v.words[old] = wordMap{census: s, ranks: ranks}
			l.tables.Words[id], l.words[id], l.dictionary[id] = texts, len(texts), true
		}
	}
}

// addConstants notes what is the same in all rows of a shape. Constant texts become words, behind those of the column's dictionary, so that
// a text that many shapes have is kept once.
func (v *vocabulary) addConstants(p *planner) {
	l := v.layout
	l.constants = make([][]*rows.Cell, len(l.tables.Shapes))
	v.texts = make([][]varying, len(v.in.Shapes))
	added := make([]map[string]uint32, len(l.tables.Columns))
	for _, id := range ranked(p.shapes) {
		shape := v.shapes[id]
		columns := l.tables.Shapes[shape].Columns
		l.constants[shape] = make([]*rows.Cell, len(columns))
		for i, pos := range p.positionsOf(id) {
			c, isText := pos.cell, l.tables.Columns[columns[i]].Kind == otlpdata.ValueString
			switch {
			case pos.varies && isText:
				v.texts[id] = append(v.texts[id], varying{i, v.in.Shapes[id].Columns[i]})
			case isText:
				c = v.constantWord(&added[columns[i]], columns[i], v.in.Text(v.in.Shapes[id].Columns[i], c))
			}
			if !pos.varies {
				l.constants[shape][i] = &c
			}
		}
	}
}

func (v *vocabulary) constantWord(added *map[string]uint32, column uint32, text string) rows.Cell {
	words := &v.layout.tables.Words[column]
	if *added == nil {
		*added = map[string]uint32{}
		for i, w := range *words {
			(*added)[w] = uint32(i + 1)
		}
	}
	if (*added)[text] == 0 {
		*words = append(*words, text)
		(*added)[text] = uint32(len(*words))
	}
	return rows.Cell{Word: (*added)[text]}
}

// translate replaces the ids of a row by those of the segment's tables. Cells that are constant are left as they are.
func (v *vocabulary) translate(h *rows.Head, cells []rows.Cell) error {
	for _, t := range v.texts[h.Shape] {
		c, w := &cells[t.position], &v.words[t.column]
		if w.census == nil {
			*c = rows.Cell{Data: v.in.Text(t.column, *c)}
			continue
		}
		at := w.census.find(*c)
		if at < 0 {
			return fmt.Errorf("BUG: a text of column %d was not counted", t.column)
		}
		*c = rows.Cell{Word: w.ranks[at] + 1}
	}
	h.Shape, h.Resource = v.shapes[h.Shape], v.resources[h.Resource]
	return nil
}
