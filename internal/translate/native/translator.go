package native

import (
	"bytes"
	"sync"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// translator writes spans as OTLP, one at a time: begin, set the fields, finish. Its strings alias
// the input until release.
type translator struct {
	out   otlpdata.Builder
	spans int

	span   otlpdata.Span
	parent otlpdata.SpanID     // the parent field of Thrift
	refs   []reference         // of the span
	nested []otlpdata.KeyValue // attributes of the span's events
	flags  uint32
	text   []byte // strings of the current span or process that are not in the input
	// warnings are the warnings of the span, as an encoded array of strings.
	warnings []byte
	items    int // remaining number of tags, logs and references of the span or process; protobuf only

	process        process
	inScope        bool // whether the resource has a scope yet
	scope, version string
}

var translators = sync.Pool{New: func() any { return new(translator) }}

// release returns the translator to the pool, without references to the input and without the
// memory of large requests.
func (t *translator) release() {
	const maxPooled = 1 << 20
	s := &t.span
	if cap(t.out.Bytes()) > maxPooled {
		t.out = otlpdata.Builder{}
	}
	t.out.Reset()
	*t = translator{
		out: t.out, refs: reuse(t.refs), nested: reuse(t.nested), text: reuse(t.text), warnings: reuse(t.warnings),
		process: process{tags: reuse(t.process.tags)},
		span:    otlpdata.Span{Attributes: reuse(s.Attributes), Events: reuse(s.Events), Links: reuse(s.Links)},
	}
	translators.Put(t)
}

// reuse empties a list for the next request, and drops a long one. Most requests are small:
// clearing the list must not dominate them.
func reuse[T any](list []T) []T {
	const maxPooled = 128
	if cap(list) > maxPooled {
		return nil
	}
	clear(list[:cap(list)])
	return list[:0]
}

// output returns a copy of the translated request, exactly as large as necessary, because requests
// may wait in queues.
func (t *translator) output() []byte { return bytes.Clone(t.out.Bytes()) }

// beginSpan clears the span.
func (t *translator) beginSpan() {
	s := &t.span
	s.TraceID, s.SpanID, s.ParentID = otlpdata.TraceID{}, otlpdata.SpanID{}, otlpdata.SpanID{}
	s.TraceState, s.Name, s.StatusMessage = "", "", ""
	s.Kind, s.StatusCode, s.Start, s.End = 0, 0, 0, 0
	s.Attributes, s.Events, s.Links = s.Attributes[:0], s.Events[:0], s.Links[:0]
	t.parent, t.flags = otlpdata.SpanID{}, 0
	t.refs, t.nested, t.text, t.warnings = t.refs[:0], t.nested[:0], t.text[:0], t.warnings[:0]
}

// finish writes the span.
func (t *translator) finish() {
	s := &t.span
	t.resolveReferences()
	scope, version := PromoteTags(s)
	s.Flags = t.flags & otlpdata.FlagSampled
	if t.flags > otlpdata.FlagSampled {
		s.Attributes = append(s.Attributes, otlpdata.KeyValue{Key: otlpdata.FlagsAttribute, Value: otlpdata.IntValue(int64(t.flags))})
	}
	if !t.inScope || scope != t.scope || version != t.version {
		t.out.Scope(scope, version, nil)
		t.inScope, t.scope, t.version = true, scope, version
	}
	t.out.Span(s)
	t.spans++
}

// addEvent adds an event to the span. Its attributes are t.nested[from:].
func (t *translator) addEvent(time uint64, from int) {
	fields := t.nested[from:len(t.nested):len(t.nested)]
	name, fields := takeEventName(fields)
	t.span.Events = append(t.span.Events, otlpdata.Event{Time: time, Name: name, Attributes: fields})
}
