package memtable

import (
	"encoding/binary"
	"errors"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// interner visits the spans of a batch. It reuses its memory. Its results for a span are valid
// until the next span.
type interner struct {
	t          *Table
	tenant     string
	tenantHash uint64 // hash of the tenant

	resource *otlpdata.Resource
	scope    *otlpdata.Scope
	origin   originIDs
	resolved bool // origin belongs to resource and scope

	head   shapeHead
	list   []field // fields of the span; without span attributes unless listed is set
	listed bool
	blob   []byte // encoded fields of list
	row    []byte
	traces []uint64 // by row of the batch: hash of its trace

	shapeCache shapeCache
	columns    []uint32
	rowHints   rowHints
	positions  []int
	extra      []otlpdata.KeyValue
	skip       int   // number of spans of the batch to skip
	started    int64 // Table.arena.written at the start of the batch
	record     int64 // ... at the start of the current record
	sinceYield int   // number of spans since readers could take the lock
}

// originIDs are the ids of resource, service and scope of a span.
type originIDs struct{ resource, service, scope uint32 }

// shapeHead holds the properties of a shape other than service, scope and columns.
type shapeHead struct {
	name         uint64 // hash of the name
	kind, status int32
}

const (
	// yieldEvery is the number of spans after which the writer lets readers take the lock.
	yieldEvery = 256
	// maxScratch is the maximum size in bytes of scratch memory that is kept for the next span.
	maxScratch = 1 << 20
	// maxAppend is the size in bytes above which Append adds no more spans, to limit the memory of
	// a request that waits to be written.
	maxAppend = 16 << 20
	// fullRecord is the size in bytes above which the next span starts a new record. Damage to a
	// record costs all of its spans.
	fullRecord = 128 << 10
	// maxList is the maximum capacity of lists that are kept for the next batch.
	maxList = 4096
)

// errRecordFull ends the walk of a batch when the table is full or the batch too large.
var errRecordFull = errors.New("memtable is full or batch is too large")

// begin prepares for a batch whose first skip spans are already stored.
func (n *interner) begin(tenant string, skip int) {
	n.skip, n.started, n.record = skip, n.t.arena.written, n.t.arena.written
	n.tenant, n.tenantHash = tenant, n.t.hash.text(tenant)
	n.resource, n.scope, n.resolved = nil, nil, false
	n.traces = n.traces[:0]
}

// end drops references to the batch, and lists that have grown large.
func (n *interner) end() {
	if max(cap(n.list), cap(n.extra), cap(n.rowHints.texts)) > maxList {
		n.list, n.extra, n.positions, n.rowHints.texts = nil, nil, nil, nil
	}
	clear(n.list[:cap(n.list)])
	clear(n.extra[:cap(n.extra)])
	n.resource, n.scope = nil, nil
}

// Resource sets the resource. It is defined with its first span.
func (n *interner) Resource(r *otlpdata.Resource) error {
	n.resource, n.resolved = r, false
	return nil
}

// Scope sets the scope.
func (n *interner) Scope(s *otlpdata.Scope) error {
	n.scope, n.resolved = s, false
	return nil
}

// Span adds the span as a row.
func (n *interner) Span(s *otlpdata.Span) error {
	if n.skip > 0 {
		n.skip--
		return nil
	}
	if len(n.traces) > 0 && (n.sinceYield == 0 && n.t.full() || n.t.arena.written-n.started+int64(len(s.Raw)) > maxAppend) {
		return errRecordFull
	}
	if n.t.arena.written-n.record > fullRecord {
		n.record = n.t.arena.written
		n.t.startRecord(len(n.traces))
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
	h := rows.Head{Shape: shape, Resource: n.origin.resource, TraceID: s.TraceID, SpanID: s.SpanID, ParentID: s.ParentID,
		Start: s.Start, End: s.End}
	n.row = rows.AppendHead(n.row[:0], &h)
	if err := n.cells(shape, s); err != nil {
		return err
	}
	at, _ := n.t.arena.put(rows.TagRow, n.row)
	n.t.addRow(at, &h, &n.rowHints)
	n.traces = append(n.traces, n.t.hash.trace(n.tenantHash, &s.TraceID))
	n.yieldLock()
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
	case otlpdata.ValueArray:
		if holdsAttribute(p) {
			n.rowHints.addArray(&n.t.hash, n.t.columns[at.column].key, *v)
		}
		fallthrough
	default:
		return rows.AppendCell(row, v.Kind(), rows.CellOf(*v)), nil
	}
	t, text := n.t, v.Str()
	word, err := t.word(at, text)
	if word > 0 || err != nil {
		return binary.AppendUvarint(row, uint64(word)), err
	}
	if holdsAttribute(p) {
		n.rowHints.texts = append(n.rowHints.texts, t.hash.attribute(t.columns[at.column].key, text))
	}
	return rows.AppendCell(row, otlpdata.ValueString, rows.Cell{Data: text}), nil
}

// yieldLock lets readers take the lock from time to time, and drops scratch memory that has grown
// large.
func (n *interner) yieldLock() {
	if cap(n.row) > maxScratch {
		n.row = nil
	}
	if cap(n.blob) > maxScratch {
		n.blob = nil
	}
	if n.sinceYield++; n.sinceYield >= yieldEvery {
		n.sinceYield = 0
		n.t.mu.Unlock()
		n.t.mu.Lock()
	}
}

// resolve finds or defines the resource and scope of the following spans.
func (n *interner) resolve() error {
	var err error
	if n.origin.resource, err = n.t.resourceID(n.tenant, n.resource); err != nil {
		return err
	}
	n.origin.service = n.t.serviceOf[n.origin.resource]
	n.origin.scope, err = n.t.scopeID(n.scope)
	n.resolved = err == nil
	return err
}

func (n *interner) service() *service { return &n.t.services[n.origin.service] }

func (t *Table) resourceID(tenant string, r *otlpdata.Resource) (uint32, error) {
	candidates := t.byResource.find(t.encodedHash(tenant, r.SchemaURL, r.Raw))
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
	candidates := t.byScope.find(t.encodedHash("", s.SchemaURL, s.Raw))
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
