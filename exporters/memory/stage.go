package memory

import (
	"hash/maphash"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// stage is a request that was read, hashed and grouped by trace before the lock is taken. It shares
// memory with the request.
type stage struct {
	terms   termReader
	origins []stagedOrigin
	keys    []byte // encoded origins, see stagedOrigin
	spans   []stagedSpan
	values  []term
	groups  []group
	byTrace map[otlpdata.TraceID]int // index of groups
	open    *otlpdata.Resource
	bytes   int64
}

// stagedOrigin is the encoding of a resource and a scope, keys[from:to]. Its length limits the
// memory of the interned origin.
type stagedOrigin struct{ from, to int }

// stagedSpan is a span of the request. next is 1 + the index of the next span of its trace.
type stagedSpan struct {
	start    uint64
	duration uint64
	raw      []byte
	name     string
	kind     string
	failed   bool
	root     bool
	debug    bool
	count    uint32
	origin   int
	from, to int // of values
	next     int
}

// group holds the spans of one trace: the first, the last and their number.
type group struct {
	id          otlpdata.TraceID
	first, last int
	n           int
}

func newStage(seed maphash.Seed) *stage {
	return &stage{terms: termReader{seed: seed}, byTrace: make(map[otlpdata.TraceID]int)}
}

// reset clears the stage and reports whether it is small enough to be reused.
func (st *stage) reset() bool {
	const maxReused = 1 << 14 // spans
	if cap(st.spans) > maxReused || cap(st.values) > 32*maxReused || cap(st.keys) > 64*maxReused || cap(st.origins) > maxReused {
		return false
	}
	clear(st.spans)
	clear(st.values)
	clear(st.byTrace)
	st.origins, st.keys, st.spans, st.values, st.groups = st.origins[:0], st.keys[:0], st.spans[:0], st.values[:0], st.groups[:0]
	st.open, st.bytes = nil, 0
	return true
}

// Resource sets the resource of the following scopes.
func (st *stage) Resource(r *otlpdata.Resource) error {
	st.open = r
	return nil
}

// Scope starts an origin.
func (st *stage) Scope(s *otlpdata.Scope) error {
	from := len(st.keys)
	st.keys = otlpdata.AppendResourceSpans(st.keys, st.open, s)
	st.origins = append(st.origins, stagedOrigin{from, len(st.keys)})
	st.bytes += originCost(len(st.keys)-from, termCount(st.open.Attributes)+termCount(s.Attributes))
	st.bytes += costName + int64(len(st.open.Service))
	for _, kv := range st.open.Attributes {
		st.bytes += costName + int64(len(kv.Key))
	}
	for _, kv := range s.Attributes {
		st.bytes += costName + int64(len(kv.Key))
	}
	return nil
}

// Span adds a span to the group of its trace.
func (st *stage) Span(s *otlpdata.Span) error {
	from := len(st.values)
	st.values = st.terms.span(st.values, s)
	i := len(st.spans)
	duration, _ := s.Duration()
	st.spans = append(st.spans, stagedSpan{
		start: s.Start, duration: duration, raw: s.Raw, name: s.Operation(), kind: s.KindName(),
		failed: s.StatusCode == otlpdata.StatusError,
		root:   s.ParentID.IsZero(), debug: s.NativeFlags()&otlpdata.FlagDebug != 0, count: uint32(s.AdjustedCount()),
		origin: len(st.origins) - 1, from: from, to: len(st.values),
	})
	g, ok := st.byTrace[s.TraceID]
	if !ok {
		g = len(st.groups)
		st.byTrace[s.TraceID] = g
		st.groups = append(st.groups, group{id: s.TraceID, first: i})
		st.bytes += costTrace + costBlock
	} else {
		st.spans[st.groups[g].last].next = i + 1
	}
	st.groups[g].last = i
	st.groups[g].n++
	st.bytes += costPerSpan + int64(len(s.Raw)) + costName + int64(len(st.spans[i].name))
	for _, t := range st.values[from:] {
		st.bytes += costTerm + costList + 2*costRef + costName + int64(len(t.key))
	}
	return nil
}

// cost returns an upper bound of the memory for the request.
func (st *stage) cost() int64 { return st.bytes + costTenant }

// term is an attribute value, identified by the hash of its text form.
type term struct {
	key  string
	hash uint64
}

// termReader creates terms from attributes.
type termReader struct {
	seed maphash.Seed
	text []byte // scratch
}

// hash returns the hash of the text form of a value.
func (t *termReader) hash(v otlpdata.Value) uint64 {
	if v.Kind() == otlpdata.ValueString {
		return maphash.String(t.seed, v.Str())
	}
	t.text = v.AppendText(t.text[:0])
	return maphash.Bytes(t.seed, t.text)
}

func (t *termReader) attributes(dst []term, kvs []otlpdata.KeyValue) []term {
	dst = slices.Grow(dst, len(kvs))
	for i := range kvs {
		dst = append(dst, term{kvs[i].Key, t.hash(kvs[i].Value)})
		if kvs[i].Value.Kind() == otlpdata.ValueArray {
			for text := range kvs[i].Value.IndexedTexts() {
				dst = append(dst, term{kvs[i].Key, maphash.String(t.seed, text)})
			}
		}
	}
	return dst
}

// termCount returns the number of terms of attributes.
func termCount(kvs []otlpdata.KeyValue) int {
	n := len(kvs)
	for i := range kvs {
		if kvs[i].Value.Kind() == otlpdata.ValueArray {
			for range kvs[i].Value.IndexedTexts() {
				n++
			}
		}
	}
	return n
}

// span appends the terms of a span, its events and its links.
func (t *termReader) span(dst []term, s *otlpdata.Span) []term {
	dst = t.attributes(dst, s.Attributes)
	for i := range s.Events {
		dst = t.attributes(dst, s.Events[i].Attributes)
	}
	for i := range s.Links {
		dst = t.attributes(dst, s.Links[i].Attributes)
	}
	return dst
}
