package segment

import (
	"errors"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
)

// union is one vocabulary for several sources: what means the same has one id.
type union struct {
	tables  *rows.Tables
	columns map[rows.Column]uint32
	words   []map[string]uint32 // by column
	defined map[string]uint32   // services, scopes, resources, shapes by their definition as number 0
}

func newUnion() *union {
	return &union{tables: &rows.Tables{}, columns: map[rows.Column]uint32{}, defined: map[string]uint32{}}
}

// translation tells what the ids of a source are in a union. It keeps nothing of the source's tables.
type translation struct {
	shapes, resources []uint32
	words             [][]uint32 // by column of the union and word of the source: word of the union
}

var errLost = errors.New("they do not hold all that they refer to")

// add takes in the vocabulary of a source. The union keeps its strings.
func (u *union) add(t *rows.Tables) (*translation, error) {
	if t.Lost() > 0 {
		return nil, errLost
	}
	columns := make([]uint32, len(t.Columns))
	for i, c := range t.Columns {
		columns[i] = u.column(c)
	}
	tr := &translation{words: make([][]uint32, len(u.tables.Columns))}
	for i, words := range t.Words {
		tr.words[columns[i]] = u.addWords(columns[i], words)
	}
	tr.resources = make([]uint32, len(t.Resources))
	for i := range t.Resources {
		r := &t.Resources[i]
		tr.resources[i] = define(u, rows.AppendResource(nil, 0, r.Tenant, &r.Resource), &u.tables.Resources, *r)
	}
	tr.shapes = u.addShapes(t, columns)
	return tr, nil
}

func (u *union) addShapes(t *rows.Tables, columns []uint32) []uint32 {
	scopes := make([]uint32, len(t.Scopes))
	for i := range t.Scopes {
		s := &t.Scopes[i]
		scopes[i] = define(u, rows.AppendScope(nil, 0, s), &u.tables.Scopes, *s)
	}
	shapes := make([]uint32, len(t.Shapes))
	for i := range t.Shapes {
		s := t.Shapes[i]
		s.Scope, s.Columns = scopes[s.Scope], make([]uint32, len(s.Columns))
		for j, c := range t.Shapes[i].Columns {
			s.Columns[j] = columns[c]
		}
		of := rows.Service{Tenant: s.Tenant, Name: s.Service}
		service := define(u, rows.AppendService(nil, 0, of), &u.tables.Services, of)
		shapes[i] = define(u, rows.AppendShape(nil, 0, service, &s), &u.tables.Shapes, s)
	}
	return shapes
}

// forget gives up what only add needs.
func (u *union) forget() { u.columns, u.words, u.defined = nil, nil, nil }

// define returns the id of what has a definition, and adds it to its table if it is new.
func define[T any](u *union, definition []byte, table *[]T, v T) uint32 {
	id, known := u.defined[string(definition)]
	if !known {
		id = uint32(len(*table))
		u.defined[string(definition)] = id
		*table = append(*table, v)
	}
	return id
}

func (u *union) column(c rows.Column) uint32 {
	id, known := u.columns[c]
	if !known {
		id = uint32(len(u.tables.Columns))
		u.columns[c] = id
		u.tables.Columns, u.tables.Words = append(u.tables.Columns, c), append(u.tables.Words, nil)
		u.words = append(u.words, nil)
	}
	return id
}

func (u *union) addWords(column uint32, list []string) []uint32 {
	if len(list) > 0 && u.words[column] == nil {
		u.words[column] = make(map[string]uint32, len(list))
	}
	known, words := u.words[column], make([]uint32, len(list))
	for i, text := range list {
		id, ok := known[text]
		if !ok {
			id = uint32(len(known))
			known[text] = id
			u.tables.Words[column] = append(u.tables.Words[column], text)
		}
		words[i] = id
	}
	return words
}

// cell makes a cell of a column of the union one of the union.
func (t *translation) cell(column uint32, c rows.Cell) rows.Cell {
	if c.Word > 0 {
		c.Word = t.words[column][c.Word-1] + 1
	}
	return c
}
