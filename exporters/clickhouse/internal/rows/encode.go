package rows

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"strconv"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/failure"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// MaxDays is the maximum number of days in one block that get partitions of their own. Spans of
// further days are stored like spans with implausible times, in the partition of the day of
// arrival.
const MaxDays = 31

const day = 24 * time.Hour

// Options control how a batch is encoded. The same batch with the same options gives the same
// blocks.
type Options struct {
	// Arrived is the time at which the spans arrived.
	Arrived time.Time
	// Retention is the time for which spans are stored. 0 means no limit.
	Retention time.Duration
	// MaxRows and MaxBytes limit one block. A single span may exceed MaxBytes.
	MaxRows, MaxBytes int
}

// Block holds spans in the form of both tables.
type Block struct {
	// Spans and Payload are the rows of the two tables. They have one row for each span.
	Spans, Payload *Table
	Tenant         string
	// Hash identifies the tenant and the spans with their order.
	Hash string
	// Batch is the value of the column batch of the payload, in decimal.
	Batch uint64
	// Bytes is the size of the encoded spans.
	Bytes int
	// Probes has one row for each partition.
	Probes []Probe
}

// Encode encodes the spans of a batch without duplicates and calls store for each block, in order.
// A block is valid only during the call. An error of store is returned unchanged; every other error
// means that the batch is malformed.
func Encode(b *otlpdata.Batch, o Options, store func(*Block) error) error {
	e := encoders.Get().(*encoder)
	defer e.release()
	e.options, e.store = o, store
	e.tenant = b.Meta().Tenant
	e.dedup = storequery.NewDedup()
	if err := b.Walk(e); err != nil {
		return err
	}
	return e.flush()
}

var encoders = sync.Pool{New: func() any { return newEncoder() }}

// encoder is the visitor that fills a block.
type encoder struct {
	options Options
	store   func(*Block) error
	tenant  string
	dedup   *storequery.Dedup
	spans   *spansTable
	payload *payloadTable
	content hash.Hash
	head    []byte // scratch of hash
	scratch []byte // for the call and the parts of a span
	cut     cut
	grouper failure.Grouper
	days    map[uint16]struct{} // of the block, without the day of arrival of odd spans
	bytes   int

	partitions map[partition]struct{} // of the block
	probes     []Probe

	span   tracestore.Span // resource and scope
	origin origin
}

// origin holds the parts of each row that come from the resource and the scope.
type origin struct {
	known bool
	// attributes of the resource and the scope
	run                                              run
	service, payloadService, scopeName, scopeVersion uint32
	tenant, payloadTenant, payloadOrigin             uint32
}

func newEncoder() *encoder {
	return &encoder{spans: newSpansTable(), payload: newPayloadTable(), content: sha256.New(), days: make(map[uint16]struct{}),
		partitions: make(map[partition]struct{})}
}

// release clears the encoder and keeps its memory for the next batch, unless it is unusually large.
func (e *encoder) release() {
	const maxKept = 64 << 20 // bytes of bodies and values
	a := &e.spans.attributes
	large := cap(e.payload.rest.data)+cap(a.text.texts.data)+64*(cap(e.payload.values.list)+cap(a.str.values.list)) > maxKept
	e.clear()
	e.options, e.store, e.dedup, e.span, e.grouper = Options{}, nil, nil, tracestore.Span{}, failure.Grouper{}
	if !large {
		encoders.Put(e)
	}
}

// clear empties the block.
func (e *encoder) clear() {
	e.spans.reset()
	e.payload.reset()
	e.content.Reset()
	clear(e.days)
	clear(e.partitions)
	clear(e.probes)
	e.probes = e.probes[:0]
	e.bytes, e.origin = 0, origin{}
}

// Resource implements otlpdata.Visitor.
func (e *encoder) Resource(r *otlpdata.Resource) error {
	e.span.Resource, e.origin.known = r, false
	return nil
}

// Scope implements otlpdata.Visitor.
func (e *encoder) Scope(s *otlpdata.Scope) error {
	e.span.Scope, e.origin.known = s, false
	return nil
}

// Span implements otlpdata.Visitor.
func (e *encoder) Span(s *otlpdata.Span) error {
	e.span.Span = s
	if !e.dedup.First(e.span) {
		return nil
	}
	size := len(s.Raw) + len(e.span.Resource.Raw) + len(e.span.Scope.Raw)
	if rows := e.spans.Rows(); rows > 0 && (rows >= e.options.MaxRows || e.bytes+size > e.options.MaxBytes) {
		if err := e.flush(); err != nil {
			return err
		}
	}
	e.bytes += size
	first := !e.origin.known
	if first {
		e.beginOrigin()
	}
	e.hash(partSpan, s.Raw)
	day, odd := e.dayOf(s.Start)
	duration, _ := s.Duration()
	e.probe(s, day, odd)
	e.searchRow(s, first, day, odd, duration)
	e.payloadRow(s, day, odd, duration)
	return nil
}

// What the hash of the content consists of.
const (
	partOrigin byte = iota
	partSpan
)

// hash adds bytes with their kind and length to the hash of the content.
func (e *encoder) hash(part byte, b []byte) {
	e.head = binary.LittleEndian.AppendUint64(append(e.head[:0], part), uint64(len(b)))
	e.content.Write(e.head)
	e.content.Write(b)
}

// beginOrigin prepares the parts that the rows of one resource and scope share.
func (e *encoder) beginOrigin() {
	r, s, o := e.span.Resource, e.span.Scope, &e.origin
	for _, part := range [...][]byte{[]byte(e.tenant), r.Raw, []byte(r.SchemaURL), s.Raw, []byte(s.SchemaURL)} {
		e.hash(partOrigin, part)
	}
	t, p := e.spans, e.payload
	*o = origin{
		known: true, tenant: t.tenant.number(e.tenant), payloadTenant: p.tenant.number(e.tenant),
		service: t.service.number(r.Service), payloadService: p.service.number(r.Service),
		scopeName: t.scopeName.number(s.Name), scopeVersion: t.scopeVersion.number(s.Version),
		payloadOrigin: p.origin.number(originOf(r, s)),
	}
}

// dayOf returns the value of the column "day" for a start time, and whether the day of arrival
// replaces it.
func (e *encoder) dayOf(start uint64) (date uint16, odd uint8) {
	arrived := max(e.options.Arrived.UnixNano(), 0)
	until, from := uint64(arrived)+uint64(day), uint64(0)
	if keep := e.options.Retention; keep > 0 && arrived > int64(keep) {
		from = uint64(arrived - int64(keep))
	}
	if from <= start && start <= until {
		date = uint16(start / uint64(day))
		if _, ok := e.days[date]; ok || len(e.days) < MaxDays {
			e.days[date] = struct{}{}
			return date, 0
		}
	}
	return uint16(uint64(arrived) / uint64(day)), 1
}

func (e *encoder) searchRow(s *otlpdata.Span, first bool, day uint16, odd uint8, duration uint64) {
	t, o := e.spans, &e.origin
	t.tenant.key(o.tenant)
	t.service.key(o.service)
	t.start.uint64(s.Start)
	t.day.uint16(day)
	t.odd.byte(odd)
	t.name.string(s.Operation())
	t.kind.string(s.KindName())
	t.status.string(otlpdata.StatusName(s.StatusCode))
	t.statusMessage.string(s.StatusMessage)
	group := ""
	if s.StatusCode == otlpdata.StatusError {
		group = e.grouper.Group(e.span.Resource.Service, s)
	}
	t.errorGroup.string(group)
	t.duration.uint64(duration)
	t.calls.uint64(s.AdjustedCount())
	t.traceID.bytes(s.TraceID[:])
	t.root.bool(s.ParentID.IsZero())
	t.scopeName.key(o.scopeName)
	t.scopeVersion.key(o.scopeVersion)
	for i := range s.Events {
		t.eventWords.string(s.Events[i].Name)
	}
	t.eventNames.end()
	e.attributes(s, first)
}

// attributes writes the attributes of a row. Attributes of the resource and the scope are copied
// from the first row of the origin.
func (e *encoder) attributes(s *otlpdata.Span, first bool) {
	a, o := &e.spans.attributes, &e.origin
	a.add(placeSpan, s.Attributes)
	if first {
		o.run.from = a.marks()
		a.add(placeResource, e.span.Resource.Attributes)
		a.add(placeScope, e.span.Scope.Attributes)
		o.run.to = a.marks()
	} else {
		a.repeat(&o.run)
	}
	for i := range s.Events {
		a.add(placeEvent, s.Events[i].Attributes)
	}
	for i := range s.Links {
		a.add(placeLink, s.Links[i].Attributes)
	}
	a.end()
}

func (e *encoder) payloadRow(s *otlpdata.Span, day uint16, odd uint8, duration uint64) {
	p, o := e.payload, &e.origin
	p.tenant.key(o.payloadTenant)
	p.traceID.bytes(s.TraceID[:])
	p.start.uint64(s.Start)
	p.ids.bytes(s.SpanID[:])
	p.ids.bytes(s.ParentID[:])
	p.duration.uint64(duration)
	p.service.key(o.payloadService)
	p.name.string(s.Operation())
	p.failed.bool(s.StatusCode == otlpdata.StatusError)
	call := CallOf(s)
	e.scratch = call.append(e.scratch[:0])
	p.call.bytes(e.scratch)
	p.day.uint16(day)
	p.odd.byte(odd)
	p.batch.n++
	p.origin.key(o.payloadOrigin)
	e.scratch = e.cut.span(e.scratch, s)
	p.shape.bytes(e.cut.shape)
	for _, text := range e.cut.texts {
		p.values.bytes(text)
	}
	p.texts.end()
	p.rest.bytes(e.cut.rest)
}

// flush stores the block, if it has rows, and begins another.
func (e *encoder) flush() error {
	if e.spans.Rows() == 0 {
		return nil
	}
	sum := e.content.Sum(nil)
	batch := binary.LittleEndian.Uint64(sum)
	e.payload.batch.value = strconv.FormatUint(batch, 10)
	err := e.store(&Block{Tenant: e.tenant, Spans: &e.spans.Table, Payload: &e.payload.Table, Hash: hex.EncodeToString(sum[:16]),
		Batch: batch, Bytes: e.bytes, Probes: e.probes})
	e.clear()
	return err
}
