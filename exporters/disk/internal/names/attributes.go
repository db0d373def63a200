package names

import (
	"context"
	"strings"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// attributeLister adds the keys or values of attributes in one source to a list.
type attributeLister struct {
	scan   *shapeScan
	src    int
	topic  topic
	list   *list
	tables *rows.Tables    // nil before the first shape
	roles  []role          // by column
	scopes map[uint32]bool // scopes that were added
	// By column: whether its dictionary is complete and was added, and whether spans of other
	// tenants use it; nil if not computed.
	known     map[uint32]bool
	foreign   map[uint32]bool
	assembler rows.Assembler
}

// role is the role of a column's cells for a topic.
type role uint8

const (
	hasNothing role = iota // nothing, or nothing more
	hasKey                 // the column has a key to list
	hasValues              // the cells are values to list
	hasEncoded             // the cells are encoded and may have keys or values to list
)

func newAttributeLister(s *scan.Session, src int, t topic, l *list) *attributeLister {
	return &attributeLister{scan: newShapeScan(s), src: src, topic: t, list: l, scopes: make(map[uint32]bool), known: make(map[uint32]bool)}
}

// addFromTables adds the texts that are known without reading rows, and determines which rows have
// more.
func (a *attributeLister) addFromTables(ctx context.Context) error {
	return eachShape(ctx, a.scan.session, []int{a.src}, a.topic.tenant, func(_ int, t *rows.Tables, id uint32, shape *rows.Shape) {
		if a.tables == nil {
			a.begin(t)
		}
		if !a.scopes[shape.Scope] {
			a.scopes[shape.Scope] = true
			a.takeAll(t.Scopes[shape.Scope].Attributes)
		}
		for i, c := range shape.Columns {
			switch a.roles[c] {
			case hasKey:
				a.list.add(t.Columns[c].Key)
				a.roles[c] = hasNothing
			case hasValues:
				if !a.takeColumn(id, i, c) {
					w := a.scan.want(a.src, t, id)
					w.positions = append(w.positions, i)
				}
			case hasEncoded:
				w := a.scan.want(a.src, t, id)
				w.encoded = append(w.encoded, i)
			}
		}
	})
}

// begin adds the attributes of resources. Each resource in the vocabulary has spans.
func (a *attributeLister) begin(t *rows.Tables) {
	a.tables, a.roles = t, make([]role, len(t.Columns))
	for i := range t.Columns {
		a.roles[i] = a.topic.role(&t.Columns[i])
	}
	for i := range t.Resources {
		if t.Resources[i].Tenant == a.topic.tenant {
			a.takeAll(t.Resources[i].Attributes)
		}
	}
}

func (t topic) role(c *rows.Column) role {
	switch {
	case scan.MayEncode(tracestore.AnyAttribute, c.Place):
		return hasEncoded
	case t.keys && (c.Place == rows.Attribute || c.Place == rows.EventAttribute) && c.Key != otlpdata.FlagsAttribute:
		return hasKey
	case !t.keys && scan.ColumnHolds(tracestore.Field{Place: tracestore.AnyAttribute, Key: t.key}, c):
		return hasValues
	}
	return hasNothing
}

func (a *attributeLister) takeAll(kvs []otlpdata.KeyValue) {
	for _, kv := range kvs {
		a.take(kv)
	}
}

func (a *attributeLister) take(kv otlpdata.KeyValue) {
	switch {
	case a.topic.keys && kv.Key != otlpdata.FlagsAttribute:
		a.list.add(kv.Key)
	case !a.topic.keys && kv.Key == a.topic.key:
		a.value(kv.Value)
	}
}

// value adds a value, and the elements of an array.
func (a *attributeLister) value(v otlpdata.Value) {
	a.list.add(v.AsString())
	for e := range v.ElementsInJSON() {
		a.list.add(e.AsString())
	}
}

// takeColumn adds the values at a position of a shape, and reports whether they are known without
// reading rows.
func (a *attributeLister) takeColumn(shape uint32, position int, column uint32) bool {
	if a.tables.Columns[column].Kind == otlpdata.ValueEmpty {
		a.list.add("")
		return true
	}
	if c, ok := a.scan.session.Sources[a.src].Constant(shape, position); ok {
		a.value(a.tables.Value(column, c))
		return true
	}
	if a.tables.Columns[column].Kind != otlpdata.ValueString {
		return false
	}
	known, asked := a.known[column]
	if !asked {
		known = a.dictionary(column)
		a.known[column] = known
	}
	return known
}

// dictionary adds all texts of a column if only spans of the tenant use it.
func (a *attributeLister) dictionary(column uint32) bool {
	if a.foreign == nil {
		a.foreign = make(map[uint32]bool)
		for i := range a.tables.Shapes {
			if a.tables.Shapes[i].Tenant != a.topic.tenant {
				for _, c := range a.tables.Shapes[i].Columns {
					a.foreign[c] = true
				}
			}
		}
	}
	words, complete := a.scan.session.Sources[a.src].Words(column)
	if !complete || a.foreign[column] {
		return false
	}
	for _, w := range words {
		a.list.add(w)
	}
	return true
}

// addFromRows adds the texts that only rows have, until the list is full. It reads at most the
// given number of rows and returns an upper bound of the number read.
func (a *attributeLister) addFromRows(ctx context.Context, maxRows int) (read int, _ error) {
	if a.list.full() {
		return 0, nil
	}
	a.scan.left = maxRows
	err := a.scan.run(ctx, a.row)
	return maxRows - a.scan.left, err
}

// row adds the attributes of a row.
func (a *attributeLister) row(w *wantedShape, b source.Block, row int) (more bool, _ error) {
	for _, i := range w.positions {
		c, err := b.Cell(row, i)
		if err != nil {
			return true, err
		}
		column := w.shape.Columns[i]
		a.take(otlpdata.KeyValue{Key: w.tables.Columns[column].Key, Value: w.tables.Value(column, c)})
	}
	for _, i := range w.encoded {
		c, err := b.Cell(row, i)
		if err != nil {
			return true, err
		}
		if err := a.encoded(w.tables.Columns[w.shape.Columns[i]].Place, c.Data); err != nil {
			return true, err
		}
	}
	return !a.list.full(), nil
}

// encoded adds the attributes in a cell that holds encoded fields. If values of a key are listed, a
// cell without the text of the key is not decoded.
func (a *attributeLister) encoded(p rows.Place, data string) error {
	if !a.topic.keys && !strings.Contains(data, a.topic.key) {
		return nil
	}
	s, err := a.assembler.Encoded(p, data)
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
