package native

import (
	"bytes"
	"sync"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// translator makes OTLP of spans, one at a time: begin, fill in what the wire says, finish. Its strings alias the input until release.
type translator struct {
	out   otlpdata.Builder
	spans int

	span   otlpdata.Span
	parent otlpdata.SpanID     // as Thrift has it, beside the references
	refs   []reference         // of the span
	nested []otlpdata.KeyValue // attributes of the span's events
	flags  uint32
	text   []byte // strings that are not in the input, of the span or process at hand
	// warnings of the span, as an encoded array of strings.
	warnings []byte
	items    int // how many more tags, logs and references the span or process may have; protobuf only

	process        process
	inScope        bool // whether the resource has a scope yet
	scope, version string
}

var translators = sync.Pool{New: func() any { return new(translator) }}

// release gives the translator back. The pool must not keep the input alive, nor what a large request needed.
func (t *translator) release() {
	const keepBytes = 1 << 20
	s := &t.span
	if cap(t.out.Bytes()) > keepBytes {
		t.out = otlpdata.Builder{}
	}
	t.out.Reset()
	*t = translator{
		out: t.out, refs: recycled(t.refs), nested: recycled(t.nested), text: recycled(t.text), warnings: recycled(t.warnings),
		process: process{tags: recycled(t.process.tags)},
		span:    otlpdata.Span{Attributes: recycled(s.Attributes), Events: recycled(s.Events), Links: recycled(s.Links)},
	}
	translators.Put(t)
}

// recycled returns the memory of a list, empty, for the next request. Most requests are small: to empty it must not take them long.
func recycled[T any](list []T) []T {
	const keep = 128
	if cap(list) > keep {
		return nil
	}
	clear(list[:cap(list)])
	return list[:0]
}

// output returns what was translated. It has memory of its own, of the right size: requests wait in queues.
func (t *translator) output() []byte { return bytes.Clone(t.out.Bytes()) }

// begin empties the span.
func (t *translator) begin() {
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
	scope, version := Lift(s)
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

// addEvent adds an event to the span. Its attributes are those from index from on in t.nested.
func (t *translator) addEvent(time uint64, from int) {
	fields := t.nested[from:len(t.nested):len(t.nested)]
	name, fields := liftEventName(fields)
	t.span.Events = append(t.span.Events, otlpdata.Event{Time: time, Name: name, Attributes: fields})
}
