package rows

import "errors"

// TableMerger merges the tables of several sources: equal definitions get one id. It is not safe
// for concurrent use.
type TableMerger struct {
	tables  *Tables
	columns map[Column]uint32
	words   []map[string]uint32 // by column
	defined map[string]uint32   // ids of services, scopes, resources and shapes, by their definition encoded with id 0
}

// NewTableMerger returns a TableMerger with empty tables.
func NewTableMerger() *TableMerger {
	return &TableMerger{tables: &Tables{}, columns: map[Column]uint32{}, defined: map[string]uint32{}}
}

// Translation maps the ids of a source to ids of the merged tables. It does not retain the tables
// of the source.
type Translation struct {
	Shapes, Resources []uint32
	Words             [][]uint32 // by column of the merged tables and word of the source
}

var errLost = errors.New("tables lack definitions that rows refer to")

// Tables returns the merged tables. Add extends them.
func (m *TableMerger) Tables() *Tables { return m.tables }

// Add adds the tables of a source. The merged tables retain their strings. Add fails if definitions
// are missing.
func (m *TableMerger) Add(t *Tables) (*Translation, error) {
	if t.Lost() > 0 {
		return nil, errLost
	}
	columns := make([]uint32, len(t.Columns))
	for i, c := range t.Columns {
		columns[i] = m.column(c)
	}
	tr := &Translation{Words: make([][]uint32, len(m.tables.Columns))}
	for i, words := range t.Words {
		tr.Words[columns[i]] = m.addWords(columns[i], words)
	}
	tr.Resources = make([]uint32, len(t.Resources))
	for i := range t.Resources {
		r := &t.Resources[i]
		tr.Resources[i] = define(m, AppendResource(nil, 0, r.Tenant, &r.Resource), &m.tables.Resources, *r)
	}
	tr.Shapes = m.addShapes(t, columns)
	return tr, nil
}

func (m *TableMerger) addShapes(t *Tables, columns []uint32) []uint32 {
	scopes := make([]uint32, len(t.Scopes))
	for i := range t.Scopes {
		s := &t.Scopes[i]
		scopes[i] = define(m, AppendScope(nil, 0, s), &m.tables.Scopes, *s)
	}
	shapes := make([]uint32, len(t.Shapes))
	for i := range t.Shapes {
		s := t.Shapes[i]
		s.Scope, s.Columns = scopes[s.Scope], make([]uint32, len(s.Columns))
		for j, c := range t.Shapes[i].Columns {
			s.Columns[j] = columns[c]
		}
		of := Service{Tenant: s.Tenant, Name: s.Service}
		service := define(m, AppendService(nil, 0, of), &m.tables.Services, of)
		shapes[i] = define(m, AppendShape(nil, 0, service, &s), &m.tables.Shapes, s)
	}
	return shapes
}

// Release releases the memory that only Add needs. Add must not be called afterwards.
func (m *TableMerger) Release() { m.columns, m.words, m.defined = nil, nil, nil }

// define returns the id of a definition, and adds v to the table if the definition is new.
func define[T any](m *TableMerger, definition []byte, table *[]T, v T) uint32 {
	id, known := m.defined[string(definition)]
	if !known {
		id = uint32(len(*table))
		m.defined[string(definition)] = id
		*table = append(*table, v)
	}
	return id
}

func (m *TableMerger) column(c Column) uint32 {
	id, known := m.columns[c]
	if !known {
		id = uint32(len(m.tables.Columns))
		m.columns[c] = id
		m.tables.Columns, m.tables.Words = append(m.tables.Columns, c), append(m.tables.Words, nil)
		m.words = append(m.words, nil)
	}
	return id
}

func (m *TableMerger) addWords(column uint32, list []string) []uint32 {
	if len(list) > 0 && m.words[column] == nil {
		m.words[column] = make(map[string]uint32, len(list))
	}
	known, words := m.words[column], make([]uint32, len(list))
	for i, text := range list {
		id, ok := known[text]
		if !ok {
			id = uint32(len(known))
			known[text] = id
			m.tables.Words[column] = append(m.tables.Words[column], text)
		}
		words[i] = id
	}
	return words
}

// Cell translates a cell of a column of the merged tables.
func (t *Translation) Cell(column uint32, c Cell) Cell {
	if c.Word > 0 {
		c.Word = t.Words[column][c.Word-1] + 1
	}
	return c
}
