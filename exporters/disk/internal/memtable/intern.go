package memtable

import (
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// interner is the visitor of a batch. It keeps its memory for the next batch. What it makes of a span is valid until the next span.
type interner struct {
	t      *Table
	tenant string
	owner  uint64 // hash of the tenant

	resource *otlpdata.Resource
	scope    *otlpdata.Scope
	home     place32
	resolved bool // home is that of resource and scope

	head   shapeHead
	list   []field
	blob   []byte // encoded fields of list
	row    []byte
	traces []uint64 // by row of the batch: hash of the trace

	columns   []uint32
	remarks   remarks
	positions []int
	extra     []otlpdata.KeyValue
	sinceRest int // spans since readers had a chance
}

// place32 is where a span belongs, as ids.
type place32 struct{ resource, service, scope uint32 }

// shapeHead is what a shape has beside its columns.
type shapeHead struct {
	name         uint64 // hash
	kind, status int32
}

const (
	// restEvery is after how many spans the writer lets readers have the lock.
	restEvery = 256
	// keepScratch is how many bytes of scratch stay allocated from one span to the next.
	keepScratch = 1 << 20
	// keepList is how many elements of a list do from one batch to the next.
	keepList = 4096
)

// begin prepares for a batch.
func (n *interner) begin(tenant string) {
	n.tenant, n.owner = tenant, n.t.hash.text(tenant)
	n.resource, n.scope, n.resolved = nil, nil, false
	n.traces = n.traces[:0]
}

// end drops what aliases the batch, and lists that one span has made long.
func (n *interner) end() {
	if max(cap(n.list), cap(n.extra), cap(n.remarks.texts)) > keepList {
		n.list, n.extra, n.positions, n.remarks.texts = nil, nil, nil, nil
	}
	clear(n.list[:cap(n.list)])
	clear(n.extra[:cap(n.extra)])
	n.resource, n.scope = nil, nil
}

// Resource notes the resource. It is defined when its first span comes.
func (n *interner) Resource(r *otlpdata.Resource) error {
	n.resource, n.resolved = r, false
	return nil
}

// Scope notes the scope.
func (n *interner) Scope(s *otlpdata.Scope) error {
	n.scope, n.resolved = s, false
	return nil
}

// Span makes the span a row.
func (n *interner) Span(s *otlpdata.Span) error {
	if !n.resolved {
		if err := n.resolve(); err != nil {
			return err
		}
	}
	shape, err := n.shape(s)
	if err != nil {
		return err
	}
	h := rows.Head{Shape: shape, Resource: n.home.resource, TraceID: s.TraceID, SpanID: s.SpanID, ParentID: s.ParentID,
		Start: s.Start, End: s.End}
	n.row = rows.AppendHead(n.row[:0], &h)
	if err := n.cells(n.t.tables.Shapes[shape].Columns); err != nil {
		return err
	}
	at, _ := n.t.arena.put(rows.TagRow, n.row)
	n.t.addRow(at, &h, &n.remarks)
	n.traces = append(n.traces, n.t.hash.trace(n.owner, &s.TraceID))
	n.rest()
	return nil
}

// cells appends the fields to the row.
func (n *interner) cells(columns []uint32) error {
	t := n.t
	for i := range n.list {
		v := &n.list[i].value
		if v.Kind() != otlpdata.ValueString {
			n.row = rows.AppendCell(n.row, v.Kind(), rows.CellOf(*v))
			continue
		}
		word, err := t.word(columns[i], v.Str())
		if err != nil {
			return err
		}
		if word == 0 && holdsAttribute(n.list[i].place) {
			n.remarks.texts = append(n.remarks.texts, t.hash.attribute(t.columns[columns[i]].key, v.Str()))
		}
		n.row = rows.AppendCell(n.row, otlpdata.ValueString, rows.Cell{Word: word, Data: v.Str()})
	}
	return nil
}

// rest lets readers have the lock now and then, and drops scratch that one span has made large.
func (n *interner) rest() {
	if cap(n.row) > keepScratch {
		n.row = nil
	}
	if cap(n.blob) > keepScratch {
		n.blob = nil
	}
	if n.sinceRest++; n.sinceRest >= restEvery {
		n.sinceRest = 0
		n.t.mu.Unlock()
		n.t.mu.Lock()
	}
}

// shape finds or makes the shape of a span and leaves the fields of its row in n.list.
func (n *interner) shape(s *otlpdata.Span) (uint32, error) {
	f := n.first(s)
	n.head = shapeHead{name: n.t.hash.text(s.Name), kind: s.Kind, status: s.StatusCode}
	n.fields(s, f)
	if id, ok := n.find(s.Name, f.nameInRow); ok {
		return id, nil
	}
	if chosen := n.choose(s, f); chosen != f {
		f = chosen
		if id, ok := n.find(s.Name, f.nameInRow); ok {
			return id, nil
		}
	}
	return n.define(s.Name, f.nameInRow)
}

func (n *interner) find(name string, nameInRow bool) (uint32, bool) {
	t := n.t
	candidates := t.byShape.search(t.shapeHash(n.home, n.head, nameInRow, n.list))
	for id, ok := candidates.next(); ok; id, ok = candidates.next() {
		shape := &t.tables.Shapes[id]
		if t.shapes[id].service == n.home.service && shape.Scope == n.home.scope && shape.Kind == n.head.kind &&
			shape.Status == n.head.status && shape.NameInRow == nameInRow && (nameInRow || shape.Name == name) &&
			t.fits(shape.Columns, n.list) {
			return id, true
		}
	}
	return 0, false
}

// fits reports whether the columns are exactly those of the fields.
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

// shapeHash hashes what makes a shape.
func (t *Table) shapeHash(home place32, h shapeHead, nameInRow bool, list []field) uint64 {
	hash := fold(t.hash.secret[0], uint64(home.service)<<32|uint64(home.scope))
	hash = fold(hash, uint64(uint32(h.kind))<<32|uint64(uint32(h.status)))
	if !nameInRow {
		hash = fold(hash, h.name)
	}
	for i := range list {
		hash = fold(hash, list[i].hash)
	}
	return hash
}

// define makes the shape of the fields in n.list.
func (n *interner) define(name string, nameInRow bool) (uint32, error) {
	t := n.t
	of := &t.services[n.home.service]
	shape := rows.Shape{Tenant: of.tenant, Service: of.name, Scope: n.home.scope, Kind: n.head.kind, Status: n.head.status,
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
	id := uint32(len(t.tables.Shapes))
	t.item = rows.AppendShape(t.item[:0], id, &shape)
	return id, t.define(t.item)
}

// column finds or makes the column of a field.
func (t *Table) column(f *field) (uint32, error) {
	candidates := t.byColumn.search(f.hash)
	for id, ok := candidates.next(); ok; id, ok = candidates.next() {
		if sameColumn(&t.tables.Columns[id], f) {
			return id, nil
		}
	}
	id := uint32(len(t.tables.Columns))
	t.item = rows.AppendColumn(t.item[:0], id, rows.Column{Place: f.place, Kind: f.value.Kind(), Key: f.key})
	return id, t.define(t.item)
}

// resolve finds or makes the resource and the scope of the spans that follow.
func (n *interner) resolve() error {
	var err error
	if n.home.resource, err = n.t.resourceID(n.tenant, n.resource); err != nil {
		return err
	}
	n.home.service = n.t.serviceOf[n.home.resource]
	n.home.scope, err = n.t.scopeID(n.scope)
	n.resolved = err == nil
	return err
}

func (n *interner) service() *service { return &n.t.services[n.home.service] }

func (t *Table) resourceID(tenant string, r *otlpdata.Resource) (uint32, error) {
	candidates := t.byResource.search(t.encodedHash(tenant, r.SchemaURL, r.Raw))
	for id, ok := candidates.next(); ok; id, ok = candidates.next() {
		have := &t.tables.Resources[id]
		if have.Tenant == tenant && have.SchemaURL == r.SchemaURL && string(have.Raw) == string(r.Raw) {
			return id, nil
		}
	}
	id := uint32(len(t.tables.Resources))
	t.item = rows.AppendResource(t.item[:0], id, tenant, r)
	return id, t.define(t.item)
}

func (t *Table) scopeID(s *otlpdata.Scope) (uint32, error) {
	candidates := t.byScope.search(t.encodedHash("", s.SchemaURL, s.Raw))
	for id, ok := candidates.next(); ok; id, ok = candidates.next() {
		have := &t.tables.Scopes[id]
		if have.SchemaURL == s.SchemaURL && string(have.Raw) == string(s.Raw) {
			return id, nil
		}
	}
	id := uint32(len(t.tables.Scopes))
	t.item = rows.AppendScope(t.item[:0], id, s)
	return id, t.define(t.item)
}

func (t *Table) encodedHash(tenant, url string, raw []byte) uint64 {
	return fold(fold(t.hash.text(tenant), t.hash.text(url)), t.hash.bytes(raw))
}
