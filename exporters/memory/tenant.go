package memory

import (
	"bytes"
	"hash/maphash"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// tenant holds the spans of one tenant and their indexes. It exists while it has a trace.
type tenant struct {
	name       string
	traces     map[otlpdata.TraceID]*trace
	origins    map[string]*origin // by their encoding
	identity   postings           // by the hash of origin and span, to detect duplicates
	all        list
	failed     list // spans with an error
	services   map[string]*service
	attributes map[string]*attribute
	usage      *usage // of the whole store
}

// trace holds the spans of one trace in order of arrival. Requests append blocks; deletions replace
// the slice.
type trace struct {
	id     otlpdata.TraceID
	tenant *tenant
	next   *trace // the trace created after it
	blocks []block
	// created is when the first span arrived, in nanoseconds since the Unix epoch.
	created int64
}

// block holds the spans of a trace from one request. It never changes.
type block struct {
	rows   []row
	cost   int64
	stored time.Time
}

// row is one span. It never changes after the lock was released.
type row struct {
	trace    *trace
	origin   *origin
	start    uint64
	duration uint64 // as corrected by otlpdata.Span.Duration
	seq      uint64 // number of the row in the store; the rows of a request become visible together
	raw      []byte // the encoded span
	root     bool   // has no parent
	debug    bool   // has the flag otlpdata.FlagDebug
	failed   bool   // has the status error
	count    uint32 // otlpdata.Span.AdjustedCount
}

// origin is a resource and a scope that spans of a tenant have in common. It exists while it has
// rows.
type origin struct {
	key      string
	resource otlpdata.Resource
	scope    otlpdata.Scope
	service  *service
	terms    []term
	hash     uint64 // of key
	rows     list
	cost     int64
}

func originCost(encoded, attributes int) int64 {
	return costOrigin + 2*int64(encoded) + int64(attributes)*(2*costKeyVal+costTerm+costRef)
}

func (e *exporter) insert(name string, st *stage) {
	if len(st.spans) == 0 {
		return
	}
	t := e.tenants[name]
	if t == nil {
		t = &tenant{
			name: name, traces: make(map[otlpdata.TraceID]*trace), origins: make(map[string]*origin), identity: make(postings),
			services: make(map[string]*service), attributes: make(map[string]*attribute), usage: &e.usage,
		}
		e.tenants[name] = t
		e.usage.bytes += costTenant
	}
	origins := make([]*origin, len(st.origins)) // created when the first span needs them
	for i := range st.groups {
		e.insertGroup(t, st, &st.groups[i], origins)
	}
}

// insertGroup adds the spans of one trace that are not stored yet, without duplicates.
func (e *exporter) insertGroup(t *tenant, st *stage, g *group, origins []*origin) {
	tr := t.traces[g.id]
	if tr == nil {
		tr = &trace{id: g.id, tenant: t, created: e.now().UnixNano()}
		t.traces[g.id] = tr
		e.appendTrace(tr)
	}
	rows := make([]row, 0, g.n) // must not grow, because indexes point into it
	size := 0
	for i := g.first + 1; i != 0; i = st.spans[i-1].next {
		s := &st.spans[i-1]
		if origins[s.origin] == nil {
			origins[s.origin] = t.origin(&st.terms, st.keys[st.origins[s.origin].from:st.origins[s.origin].to])
		}
		o := origins[s.origin]
		h := o.identify(st.terms.seed, s.raw)
		if t.has(h, o, s.raw) {
			continue
		}
		rows = append(rows, row{trace: tr, origin: o, start: s.start, duration: s.duration, seq: e.seq + 1, raw: s.raw, root: s.root,
			debug: s.debug, failed: s.failed, count: s.count})
		e.seq++
		size += len(s.raw)
		t.index(&rows[len(rows)-1], h, s, st.values[s.from:s.to])
	}
	if len(rows) == 0 {
		return
	}
	// Copy the spans, which share memory with the request so far.
	data := make([]byte, 0, size)
	for i := range rows {
		from := len(data)
		data = append(data, rows[i].raw...)
		rows[i].raw = data[from:len(data):len(data)]
	}
	b := block{rows: rows, cost: costBlock + int64(cap(rows))*costRow + int64(cap(data)), stored: e.now()}
	tr.blocks = append(tr.blocks, b)
	e.usage.bytes += b.cost
	e.usage.spans += len(rows)
}

// appendTrace appends a new trace to the order of eviction.
func (e *exporter) appendTrace(tr *trace) {
	if e.newest == nil {
		e.oldest = tr
	} else {
		e.newest.next = tr
	}
	e.newest = tr
	e.usage.traces++
	e.usage.bytes += costTrace
}

// origin returns the origin with an encoding, and creates it if necessary.
func (t *tenant) origin(terms *termReader, encoded []byte) *origin {
	if o := t.origins[string(encoded)]; o != nil {
		return o
	}
	o := &origin{key: string(encoded), hash: maphash.Bytes(terms.seed, encoded)}
	// Cannot fail: AppendResourceSpans encoded a resource and a scope that were parsed before.
	_ = otlpdata.Walk(slices.Clone(encoded), o)
	o.terms = terms.attributes(terms.attributes(nil, o.resource.Attributes), o.scope.Attributes)
	for i := range o.terms {
		a := t.attribute(o.terms[i].key)
		o.terms[i].key = a.key
		t.usage.bytes += a.addOrigin(o.terms[i].hash, o)
	}
	o.service = t.service(o.resource.Service)
	o.cost = costOrigin + 2*int64(len(encoded)) + int64(len(o.terms))*2*costKeyVal
	t.usage.bytes += o.cost
	t.origins[o.key] = o
	return o
}

// Resource, Scope and Span implement otlpdata.Visitor, with which an origin decodes itself.
func (o *origin) Resource(r *otlpdata.Resource) error {
	o.resource = *r
	o.resource.Attributes = slices.Clone(r.Attributes)
	return nil
}

func (o *origin) Scope(s *otlpdata.Scope) error {
	o.scope = *s
	o.scope.Attributes = slices.Clone(s.Attributes)
	return nil
}

func (o *origin) Span(*otlpdata.Span) error { return nil }

// identify returns the hash of a span of the origin, including its ids.
func (o *origin) identify(seed maphash.Seed, raw []byte) uint64 {
	return maphash.Bytes(seed, raw) ^ o.hash
}

// has reports whether the span is already stored.
func (t *tenant) has(h uint64, o *origin, raw []byte) bool {
	for r := range t.identity.rows(h) {
		if r.origin == o && bytes.Equal(r.raw, raw) {
			return true
		}
	}
	return false
}
