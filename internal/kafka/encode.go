package kafka

import (
	"github.com/tracing-backend/tracing/internal/otlpparts"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// EncodeOptions say how a batch becomes records.
type EncodeOptions struct {
	Encoding   string
	Key        string // KeyTraceID, KeyService or KeyNone
	Partitions int    // of the topic; not used with KeyNone
	MaxBytes   int    // maximum size of the key and value of a record
	// Grow is called for memory in addition to the batch, with a number of bytes. Its error ends
	// the encoding and is returned.
	Grow func(bytes int) error
	// Buffers provides memory for the values; nil: new memory for each.
	Buffers *Buffers
}

// Record is one record.
type Record struct {
	Key, Value []byte
	Partition  int32 // or AnyPartition
	Spans      int
}

// Records are the records of one batch.
type Records struct {
	List     []Record
	TooLarge int // number of spans that are larger than a record
	NoIDs    int // number of spans without ids, which the encoding requires

	assigned []int32  // for each span of the batch, the index of its record, or rejected
	buffers  *Buffers // of all values; nil: no buffers
}

const rejected int32 = -1

// Encode builds the records of a batch. Every span is in one record or counted as rejected. Records
// may share memory with the batch. The error comes from o.Grow, or from encoding a batch of
// objects.
//
// With a key, a record contains spans of one partition. A record with the spans of a single trace
// or service has its key.
func Encode(b *otlpdata.Batch, o EncodeOptions) (*Records, error) {
	e := &encoder{EncodeOptions: o, records: &Records{assigned: make([]int32, 0, b.Len())}}
	e.position.Grow = func(int) error { return nil } // count counts all bytes of a record
	groups := 1
	if o.Key != KeyNone {
		groups = o.Partitions
	}
	e.groups = make([]group, groups)
	e.newWriter = newRecordWriter(o.Encoding, min(b.Size()/groups+b.Size()/groups/8, o.MaxBytes), o.Buffers)
	var err error
	switch {
	case b.Len() == 0:
	case o.Encoding == JaegerProto || o.Encoding == JaegerJSON:
		if err = b.Walk(&spanEncoder{encoder: e}); err == nil {
			err = e.countAll()
		}
	case o.Encoding == OTLPProto && o.Key == KeyNone:
		err = e.requests(b)
	case o.Encoding == OTLPProto:
		e.records.buffers = o.Buffers
		if err = e.shallowWalk(b); err == nil {
			err = e.closeAll()
		}
	default:
		if err = b.Walk(e); err == nil {
			err = e.closeAll()
		}
	}
	if err != nil {
		return nil, err
	}
	return e.records, nil
}

// Remaining returns the spans of the records for which keep is true, as a batch; nil if there are
// none. b is the batch from which r was built.
func (r *Records) Remaining(b *otlpdata.Batch, keep func(record int) bool) (*otlpdata.Batch, error) {
	w := &remainder{records: r, keep: keep, size: b.Size()}
	w.position.Grow = func(int) error { return nil } // one part repeats nothing
	if err := b.Walk(w); err != nil || w.w.Empty() {
		return nil, err
	}
	request, services := w.w.Finish()
	return otlpdata.FromStored(request, b.Meta(), services...), nil
}

// remainder is a visitor that copies the spans of some records.
type remainder struct {
	records  *Records
	keep     func(record int) bool
	size     int
	position otlpparts.Position
	w        otlpparts.Writer
	span     int // index of the next span
}

func (w *remainder) Resource(r *otlpdata.Resource) error {
	w.position.SetResource(r)
	return nil
}

func (w *remainder) Scope(s *otlpdata.Scope) error {
	w.position.SetScope(s)
	return nil
}

func (w *remainder) Span(s *otlpdata.Span) error {
	record := w.records.assigned[w.span]
	w.span++
	if record == rejected || !w.keep(int(record)) {
		return nil
	}
	return w.w.Add(&w.position, s, w.size)
}

// encoder is a visitor that distributes spans to groups, one for each partition, or a single one.
type encoder struct {
	EncodeOptions
	records   *Records
	newWriter func() recordWriter
	groups    []group
	position  otlpparts.Position
	uncounted int // bytes of memory since the last Grow

	lastTrace otlpdata.TraceID // of the last key
	lastGroup int
	lastSet   bool
	key       []byte // of the last span
}

// group is the open record of a partition.
type group struct {
	w       recordWriter // nil if no record is open
	size    int          // its size in bytes, as far as it has been counted
	record  int32        // its index
	trace   otlpdata.TraceID
	service string
	mixed   bool // several keys
}

// Resource implements otlpdata.Visitor.
func (e *encoder) Resource(r *otlpdata.Resource) error {
	e.position.SetResource(r)
	if e.Key == KeyService {
		e.lastSet = false
	}
	return nil
}

// Scope implements otlpdata.Visitor.
func (e *encoder) Scope(s *otlpdata.Scope) error {
	e.position.SetScope(s)
	return nil
}

// Span implements otlpdata.Visitor.
func (e *encoder) Span(s *otlpdata.Span) error {
	if (e.Encoding == ZipkinJSON || e.Encoding == ZipkinProto) && (s.TraceID.IsZero() || s.SpanID.IsZero()) {
		e.records.NoIDs++
		e.records.assigned = append(e.records.assigned, rejected)
		return nil
	}
	e.route(s)
	g := &e.groups[e.lastGroup]
	limit := e.MaxBytes - len(e.key)
	if g.w != nil {
		added, err := g.w.addSpan(&e.position, s, limit)
		if err != nil {
			return err
		}
		if added {
			return e.added(g, s)
		}
		if err := e.close(g); err != nil {
			return err
		}
	}
	if err := e.opening(); err != nil {
		return err
	}
	w := e.newWriter()
	added, err := w.addSpan(&e.position, s, limit)
	if err != nil {
		return err
	}
	if !added {
		return e.reject(len(e.position.Resource.Raw) + len(e.position.Scope.Raw))
	}
	*g = group{w: w, record: int32(len(e.records.List)), trace: s.TraceID, service: e.position.Resource.Service}
	e.records.List = append(e.records.List, Record{Partition: e.partition()})
	return e.added(g, s)
}

// opening counts the memory that a writer needs besides its record: the otlp_json writer translates
// the resource and the scope.
func (e *encoder) opening() error {
	if e.Encoding != OTLPJSON {
		return nil
	}
	return e.count(len(e.position.Resource.Raw) + len(e.position.Scope.Raw))
}

// growStep is the number of bytes after which Grow is called.
const growStep = 64 << 10

// count counts n bytes of memory. It calls Grow when many have not been reported yet.
func (e *encoder) count(n int) error {
	if e.uncounted += n; e.uncounted < growStep {
		return nil
	}
	return e.countAll()
}

// countAll calls Grow for bytes that have not been reported yet.
func (e *encoder) countAll() error {
	n := max(e.uncounted, 0) // completing a record may make it a little smaller
	e.uncounted = 0
	return e.Grow(n)
}

// reject rejects a span that is too large. The n bytes translated for it count as used, which
// limits how often a large resource with many spans is translated.
func (e *encoder) reject(n int) error {
	e.records.TooLarge++
	e.records.assigned = append(e.records.assigned, rejected)
	return e.count(n)
}

// route sets the group and key of a span. Neighbors often share them.
func (e *encoder) route(s *otlpdata.Span) {
	if e.Key == KeyNone || e.lastSet && (e.Key == KeyService || s.TraceID == e.lastTrace) {
		return
	}
	e.key = e.appendKey(e.key[:0], s)
	e.lastGroup, e.lastTrace, e.lastSet = int(PartitionOf(e.key, e.Partitions)), s.TraceID, true
}

func (e *encoder) appendKey(dst []byte, s *otlpdata.Span) []byte {
	switch {
	case e.Key == KeyService:
		return append(dst, e.position.Resource.Service...)
	case e.Encoding == JaegerProto || e.Encoding == JaegerJSON:
		return append(dst, s.TraceID.String()...)
	}
	return appendTraceKey(dst, s.TraceID)
}

func (e *encoder) partition() int32 {
	if e.Key == KeyNone {
		return AnyPartition
	}
	return int32(e.lastGroup)
}

// added must be called after a span was added to the open record of a group.
func (e *encoder) added(g *group, s *otlpdata.Span) error {
	e.records.assigned = append(e.records.assigned, g.record)
	e.records.List[g.record].Spans++
	g.mixed = g.mixed || e.Key == KeyTraceID && g.trace != s.TraceID || e.Key == KeyService && g.service != e.position.Resource.Service
	grown := g.w.size() - g.size
	g.size += grown
	return e.count(grown)
}

// close completes the open record of a group.
func (e *encoder) close(g *group) error {
	r := &e.records.List[g.record]
	r.Value = g.w.finish()
	switch {
	case g.mixed || e.Key == KeyNone:
	case e.Key == KeyService:
		r.Key = []byte(g.service)
	default:
		r.Key = appendTraceKey([]byte{}, g.trace)
	}
	g.w = nil
	return e.count(len(r.Value) - g.size)
}

func (e *encoder) closeAll() error {
	for i := range e.groups {
		if g := &e.groups[i]; g.w != nil {
			if err := e.close(g); err != nil {
				return err
			}
		}
	}
	return e.countAll()
}
