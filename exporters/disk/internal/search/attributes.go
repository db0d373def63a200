package search

import (
	"context"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// AttributeKeys implements tracestore.AttributeCatalog. Of keys that stand in rows those of the newest spans are listed.
func (e *Engine) AttributeKeys(ctx context.Context, tenant, prefix string, limit int) ([]string, error) {
	s := e.begin()
	defer s.lease.release()
	a := newAttributes(s, s.newList(prefix, limit))
	add := func(key string) {
		if key != otlpdata.FlagsAttribute {
			a.list.add(key)
		}
	}
	a.take = func(kv otlpdata.KeyValue) { add(kv.Key) }
	a.column = func(_ int, t *rows.Tables, id uint32, index int) bool {
		if c := &t.Columns[t.Shapes[id].Columns[index]]; c.Place == rows.Attribute || c.Place == rows.EventAttribute {
			add(c.Key)
		}
		return false
	}
	return a.collect(ctx, tenant)
}

// AttributeValues implements tracestore.AttributeCatalog. Of values that stand in rows those of the newest spans are listed, and no more
// than are asked for.
func (e *Engine) AttributeValues(ctx context.Context, tenant, key, prefix string, limit int) ([]string, error) {
	if key == otlpdata.FlagsAttribute {
		return []string{}, nil
	}
	s := e.begin()
	defer s.lease.release()
	a := newAttributes(s, s.newList(prefix, limit))
	a.take = func(kv otlpdata.KeyValue) {
		if kv.Key == key {
			a.list.add(kv.Value.AsString())
		}
	}
	v := values{attributes: a, key: key, tenant: tenant, known: make(map[sourceID]bool), foreign: make([]map[uint32]bool, len(s.sources))}
	a.column = v.column
	return a.collect(ctx, tenant)
}

// attributes goes over attributes to make a list of their keys or values.
type attributes struct {
	*scan
	list   *list
	take   func(otlpdata.KeyValue)
	scopes map[sourceID]bool // that were taken
	// column takes what is known of a column of a shape, and reports whether its cells are to be read.
	column    func(src int, t *rows.Tables, shape uint32, index int) bool
	cells     []rows.Cell
	assembler rows.Assembler
}

// sourceID is the number of something in a source.
type sourceID struct {
	src int
	id  uint32
}

func newAttributes(s *session, l *list) *attributes {
	return &attributes{scan: s.newScan(), list: l, scopes: make(map[sourceID]bool)}
}

// collect reads rows only where the list is not full without them.
func (a *attributes) collect(ctx context.Context, tenant string) ([]string, error) {
	last := -1
	err := a.eachShape(ctx, a.all(), tenant, func(src int, t *rows.Tables, id uint32, shape *rows.Shape) {
		if src != last { // a resource without spans is in no source
			last = src
			a.takeResources(t, tenant)
		}
		if scope := (sourceID{src, shape.Scope}); !a.scopes[scope] {
			a.scopes[scope] = true
			a.takeAll(t.Scopes[shape.Scope].Attributes)
		}
		for i, c := range shape.Columns {
			if encodes(tracestore.AnyAttribute, t.Columns[c].Place) {
				a.want(src, t, id).encoded = true
			} else if a.column(src, t, id, i) {
				w := a.want(src, t, id)
				w.positions = append(w.positions, i)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	if !a.list.full() {
		err = a.run(ctx, a.row)
	}
	return a.list.sorted(), err
}

func (a *attributes) takeResources(t *rows.Tables, tenant string) {
	for i := range t.Resources {
		if t.Resources[i].Tenant == tenant {
			a.takeAll(t.Resources[i].Attributes)
		}
	}
}

func (a *attributes) takeAll(kvs []otlpdata.KeyValue) {
	for _, kv := range kvs {
		a.take(kv)
	}
}

// row takes the attributes of a row that were not known without it.
func (a *attributes) row(w *scanned, b source.Block, row int) (more bool, _ error) {
	for _, i := range w.positions {
		c, err := b.Cell(row, i)
		if err != nil {
			return true, err
		}
		column := w.shape.Columns[i]
		a.take(otlpdata.KeyValue{Key: w.tables.Columns[column].Key, Value: w.tables.Value(column, c)})
	}
	if w.encoded {
		if err := a.span(w, b, row); err != nil {
			return true, err
		}
	}
	return !a.list.full(), nil
}

func (a *attributes) span(w *scanned, b source.Block, row int) error {
	var h rows.Head
	s, err := assemble(w.tables, b, row, &h, &a.cells, &a.assembler)
	if err != nil {
		return err
	}
	a.takeAll(s.Attributes)
	for i := range s.Events {
		a.takeAll(s.Events[i].Attributes)
	}
	for i := range s.Links {
		a.takeAll(s.Links[i].Attributes)
	}
	return nil
}

// values knows what columns hold.
type values struct {
	*attributes
	key, tenant string
	known       map[sourceID]bool // columns: whether their dictionaries are complete and were taken
	foreign     []map[uint32]bool // by source: columns that spans of other tenants fill as well; nil until asked for
}

// column implements attributes.column.
func (v *values) column(src int, t *rows.Tables, shape uint32, index int) bool {
	id := t.Shapes[shape].Columns[index]
	if !concerns(tracestore.Field{Place: tracestore.AnyAttribute, Key: v.key}, &t.Columns[id]) {
		return false
	}
	if t.Columns[id].Kind == otlpdata.ValueEmpty {
		v.list.add("")
		return false
	}
	if c, ok := v.sources[src].Constant(shape, index); ok {
		v.list.add(t.Value(id, c).AsString())
		return false
	}
	if t.Columns[id].Kind != otlpdata.ValueString {
		return true
	}
	at := sourceID{src, id}
	known, asked := v.known[at]
	if !asked {
		known = v.dictionary(src, t, id)
		v.known[at] = known
	}
	return !known
}

// dictionary takes all texts of a column, if they are known to be the tenant's.
func (v *values) dictionary(src int, t *rows.Tables, column uint32) bool {
	if v.foreign[src] == nil {
		v.foreign[src] = make(map[uint32]bool)
		for i := range t.Shapes {
			if t.Shapes[i].Tenant != v.tenant {
				for _, c := range t.Shapes[i].Columns {
					v.foreign[src][c] = true
				}
			}
		}
	}
	words, complete := v.sources[src].Words(column)
	if !complete || v.foreign[src][column] {
		return false
	}
	for _, w := range words {
		v.list.add(w)
	}
	return true
}
