package memtable

import (
	"encoding/binary"
	"errors"

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
	list   []field // of the span, or, unless listed, those that are no attributes of it
	listed bool
	blob   []byte // encoded fields of list
	row    []byte
	traces []uint64 // by row of the batch: hash of the trace

	guesses   guesses
	columns   []uint32
	remarks   remarks
	positions []int
	extra     []otlpdata.KeyValue
	skip      int   // spans of the batch that are still to be passed over
	started   int64 // Table.arena.written at the record's begin
	sinceRest int   // spans since readers had a chance
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
	// maxRecord is the length above which a record takes no more spans: a log does not take records of any length.
	maxRecord = 16 << 20
	// keepList is how many elements of a list do from one batch to the next.
	keepList = 4096
)

// errEnough ends the walk of a batch when the table is full, or the record long enough.
var errEnough = errors.New("no more room for spans")

// begin prepares for a batch, of which so many spans were taken before.
func (n *interner) begin(tenant string, skip int) {
	n.skip, n.started = skip, n.t.arena.written
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
	if n.skip > 0 {
		n.skip--
		return nil
	}
	if len(n.traces) > 0 && (n.sinceRest == 0 && n.t.full() || n.t.arena.written-n.started+int64(len(s.Raw)) > maxRecord) {
		return errEnough
	}
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
	if err := n.cells(shape, s); err != nil {
		return err
	}
	at, _ := n.t.arena.put(rows.TagRow, n.row)
	n.t.addRow(at, &h, &n.remarks)
	n.traces = append(n.traces, n.t.hash.trace(n.owner, &s.TraceID))
	n.rest()
	return nil
}

// cells appends the cells of the span to the row.
func (n *interner) cells(shape uint32, s *otlpdata.Span) error {
	slots := n.t.slotsOf(shape)
	row, err := n.row, error(nil)
	if !n.listed {
		for i := range s.Attributes {
			if row, err = n.cell(row, &slots[i], rows.Attribute, &s.Attributes[i].Value); err != nil {
				return err
			}
		}
		slots = slots[len(s.Attributes):]
	}
	for i := range n.list {
		if row, err = n.cell(row, &slots[i], n.list[i].place, &n.list[i].value); err != nil {
			return err
		}
	}
	n.row = row
	return nil
}

// cell appends the cell of a value to a row.
func (n *interner) cell(row []byte, at *slot, p rows.Place, v *otlpdata.Value) ([]byte, error) {
	switch v.Kind() {
	case otlpdata.ValueString:
	case otlpdata.ValueInt:
		return binary.AppendVarint(row, v.Int()), nil
	default:
		return rows.AppendCell(row, v.Kind(), rows.CellOf(*v)), nil
	}
	t, text := n.t, v.Str()
	word, err := t.word(at, text)
	if word > 0 || err != nil {
		return binary.AppendUvarint(row, uint64(word)), err
	}
	if holdsAttribute(p) {
		n.remarks.texts = append(n.remarks.texts, t.hash.attribute(t.columns[at.column].key, text))
	}
	return rows.AppendCell(row, otlpdata.ValueString, rows.Cell{Data: text}), nil
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
	if f.attributes != asColumns {
		return n.lookUp(s, f)
	}
	n.begins(false)
	n.others(s, f)
	g := n.guesses.of(n.home, s, f.nameInRow, n.list)
	if id := *g - 1; *g > 0 && n.isOf(id, s, f.nameInRow) {
		return id, nil
	}
	id, err := n.lookUp(s, f)
	if err == nil {
		*g = id + 1
	}
	return id, err
}

// lookUp finds or makes the shape of a span whose form to begin with is f.
func (n *interner) lookUp(s *otlpdata.Span, f form) (uint32, error) {
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
