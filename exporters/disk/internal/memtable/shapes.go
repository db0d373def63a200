package memtable

import (
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// shape finds or defines the shape of a span. It leaves the fields of the row in n.list.
func (n *interner) shape(s *otlpdata.Span) (uint32, error) {
	f := n.initialLayout(s)
	if f.attributes != asColumns {
		return n.lookUp(s, f)
	}
	n.beginFields(false)
	n.others(s, f)
	g := n.shapeCache.of(n.origin, s, f.nameInRow, n.list)
	if id := *g - 1; *g > 0 && n.matchesShape(id, s, f.nameInRow) {
		return id, nil
	}
	id, err := n.lookUp(s, f)
	if err == nil {
		*g = id + 1
	}
	return id, err
}

// lookUp finds or defines the shape of a span, starting with layout f.
func (n *interner) lookUp(s *otlpdata.Span, f spanLayout) (uint32, error) {
	n.head = shapeHead{name: n.t.hash.text(s.Name), kind: s.Kind, status: s.StatusCode}
	n.fields(s, f)
	if id, ok := n.find(s.Name, f.nameInRow); ok {
		return id, nil
	}
	if chosen := n.chooseLayout(s, f); chosen != f {
		f = chosen
		if id, ok := n.find(s.Name, f.nameInRow); ok {
			return id, nil
		}
	}
	return n.define(s.Name, f.nameInRow)
}

func (n *interner) find(name string, nameInRow bool) (uint32, bool) {
	t := n.t
	candidates := t.byShape.find(t.shapeHash(n.origin, n.head, nameInRow, n.list))
	for id, ok := candidates.next(); ok; id, ok = candidates.next() {
		shape := &t.tables.Shapes[id]
		if t.shapes[id].service == n.origin.service && shape.Scope == n.origin.scope && shape.Kind == n.head.kind &&
			shape.Status == n.head.status && shape.NameInRow == nameInRow && (nameInRow || shape.Name == name) &&
			t.fits(shape.Columns, n.list) {
			return id, true
		}
	}
	return 0, false
}

// fits reports whether the columns match the fields exactly.
func (t *Table) fits(columns []uint32, list []field) bool {
	if len(columns) != len(list) {
		return false
	}
	for i, c := range columns {
		if f := &list[i]; !sameColumn(&t.tables.Columns[c], f) {
			return false
		}
	}
	return true
}

func sameColumn(c *rows.Column, f *field) bool {
	return c.Place == f.place && c.Kind == f.value.Kind() && c.Key == f.key
}

// shapeHash returns the hash of the properties of a shape.
func (t *Table) shapeHash(origin originIDs, h shapeHead, nameInRow bool, list []field) uint64 {
	hash := fold(t.hash.secret[0], uint64(origin.service)<<32|uint64(origin.scope))
	hash = fold(hash, uint64(uint32(h.kind))<<32|uint64(uint32(h.status)))
	if !nameInRow {
		hash = fold(hash, h.name)
	}
	for i := range list {
		hash = fold(hash, list[i].hash)
	}
	return hash
}

// define defines a shape with the fields in n.list.
func (n *interner) define(name string, nameInRow bool) (uint32, error) {
	t := n.t
	of := &t.services[n.origin.service]
	shape := rows.Shape{Tenant: of.tenant, Service: of.name, Scope: n.origin.scope, Kind: n.head.kind, Status: n.head.status,
		Name: name, NameInRow: nameInRow, Columns: n.columns[:0]}
	if nameInRow {
		shape.Name = ""
	}
	for i := range n.list {
		id, err := t.column(&n.list[i])
		if err != nil {
			return 0, err
		}
		shape.Columns = append(shape.Columns, id)
	}
	n.columns = shape.Columns
	if of.number == 0 {
		t.item = rows.AppendService(t.item[:0], uint32(len(t.tables.Services)), rows.Service{Tenant: of.tenant, Name: of.name})
		if err := t.define(t.item); err != nil {
			return 0, err
		}
	}
	id := uint32(len(t.tables.Shapes))
	t.item = rows.AppendShape(t.item[:0], id, of.number-1, &shape)
	return id, t.define(t.item)
}

// column finds or defines the column of a field.
func (t *Table) column(f *field) (uint32, error) {
	candidates := t.byColumn.find(f.hash)
	for id, ok := candidates.next(); ok; id, ok = candidates.next() {
		if sameColumn(&t.tables.Columns[id], f) {
			return id, nil
		}
	}
	id := uint32(len(t.tables.Columns))
	t.item = rows.AppendColumn(t.item[:0], id, rows.Column{Place: f.place, Kind: f.value.Kind(), Key: f.key})
	return id, t.define(t.item)
}
