package probabilisticsampler

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// Fields of an ExportTraceServiceRequest, a ResourceSpans, a ScopeSpans and a Span.
const (
	fieldResourceSpans  = 1
	fieldScopeSpans     = 2
	fieldOldScopeSpans  = 1000 // deprecated number of ScopeSpans, still accepted
	fieldSpans          = 2
	fieldSpanTraceID    = 1
	fieldSpanTraceState = 3
)

// maxGrowth is the maximum number of bytes that are added to a span: a field with `ot=rv:`, `th:`
// and 14 digits each, and longer lengths of the enclosing messages.
const maxGrowth = 64

// edit copies encoded requests without the spans that are not sampled. It changes the tracestate of
// sampled spans if necessary and copies all other fields without decoding them.
type edit struct {
	method     method
	out        []byte
	state      []byte // scratch
	kept       int
	priorities bool // the request may contain spans with a priority
}

func (e *edit) request(chunk []byte) {
	e.priorities = mentionsPriority(chunk)
	for f := range protoenc.Fields(chunk) {
		if f.Num != fieldResourceSpans || !f.Bytes {
			e.out = append(e.out, f.Raw...)
			continue
		}
		e.nested(fieldResourceSpans, f.Content, e.resourceSpans)
	}
}

// nested appends a message with the fields appended by write, or nothing if no span was kept.
func (e *edit) nested(num int, content []byte, write func([]byte)) {
	before, mark := e.kept, len(e.out)
	reserved := protowire.SizeVarint(uint64(len(content)))
	var at int
	e.out, at = protoenc.BeginMessage(e.out, num, reserved)
	write(content)
	if e.kept == before {
		e.out = e.out[:mark]
		return
	}
	e.out = protoenc.EndMessage(e.out, at, reserved)
}

func (e *edit) resourceSpans(content []byte) {
	for f := range protoenc.Fields(content) {
		if f.Bytes && (f.Num == fieldScopeSpans || f.Num == fieldOldScopeSpans) {
			e.nested(fieldScopeSpans, f.Content, e.scopeSpans)
			continue
		}
		e.out = append(e.out, f.Raw...)
	}
}

func (e *edit) scopeSpans(content []byte) {
	for f := range protoenc.Fields(content) {
		if f.Bytes && f.Num == fieldSpans {
			e.span(f)
			continue
		}
		e.out = append(e.out, f.Raw...)
	}
}

func (e *edit) span(span protoenc.Field) {
	traceID, tracestate, p := e.read(span.Content)
	state, changed, sampled := e.method.decide(e.state[:0], traceID, tracestate, p)
	if !sampled {
		return
	}
	e.kept++
	if !changed {
		e.out = append(e.out, span.Raw...)
		return
	}
	e.state = state
	reserved := protowire.SizeVarint(uint64(len(span.Content)))
	var at int
	e.out, at = protoenc.BeginMessage(e.out, fieldSpans, reserved)
	for f := range protoenc.Fields(span.Content) {
		if f.Num != fieldSpanTraceState {
			e.out = append(e.out, f.Raw...)
		}
	}
	e.out = protowire.AppendTag(e.out, fieldSpanTraceState, protowire.BytesType)
	e.out = protowire.AppendBytes(e.out, e.state)
	e.out = protoenc.EndMessage(e.out, at, reserved)
}

// read returns the properties of a span that the decision depends on. id is zero if the trace id
// has a wrong length.
func (e *edit) read(span []byte) (id otlpdata.TraceID, tracestate []byte, p priority) {
	found := false // as for all attributes, the first one with the key is used
	for f := range protoenc.Fields(span) {
		switch {
		case !f.Bytes:
		case f.Num == fieldSpanTraceID:
			id = otlpdata.TraceID{}
			if len(f.Content) == len(id) {
				id = otlpdata.TraceID(f.Content)
			}
		case f.Num == fieldSpanTraceState:
			tracestate = f.Content
		case f.Num == fieldSpanAttributes && e.priorities && !found:
			p, found = priorityOf(f.Content)
		}
	}
	return id, tracestate, p
}
