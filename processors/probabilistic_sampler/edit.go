package probabilisticsampler

import (
	"iter"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// Fields of an ExportTraceServiceRequest, a ResourceSpans, a ScopeSpans and a Span.
const (
	fieldResourceSpans  = 1
	fieldScopeSpans     = 2
	fieldOldScopeSpans  = 1000 // what ScopeSpans was long ago; it still counts
	fieldSpans          = 2
	fieldSpanTraceID    = 1
	fieldSpanTraceState = 3
)

// growth bounds what a threshold adds to a span, in bytes: a field with `ot=th:` and 14 digits, and
// longer lengths around it.
const growth = 48

// edit copies requests without the spans that are not sampled. Nothing is decoded: spans are
// written again with another tracestate, if at all, and all else is copied.
type edit struct {
	*sampler
	out   []byte
	state []byte // scratch
	kept  int
}

func (e *edit) request(segment []byte) {
	for f := range fields(segment) {
		if f.num != fieldResourceSpans || !f.message {
			e.out = append(e.out, f.raw...)
			continue
		}
		e.nested(fieldResourceSpans, f.content, e.resourceSpans)
	}
}

// nested writes a message as what write makes of it, unless no span is left of it.
func (e *edit) nested(num int, content []byte, write func([]byte)) {
	before, mark := e.kept, len(e.out)
	room := protowire.SizeVarint(uint64(len(content)))
	var at int
	e.out, at = protoenc.BeginMessage(e.out, num, room)
	write(content)
	if e.kept == before {
		e.out = e.out[:mark]
		return
	}
	e.out = protoenc.EndMessage(e.out, at, room)
}

func (e *edit) resourceSpans(content []byte) {
	for f := range fields(content) {
		if f.message && (f.num == fieldScopeSpans || f.num == fieldOldScopeSpans) {
			e.nested(fieldScopeSpans, f.content, e.scopeSpans)
			continue
		}
		e.out = append(e.out, f.raw...)
	}
}

func (e *edit) scopeSpans(content []byte) {
	for f := range fields(content) {
		if f.message && f.num == fieldSpans {
			e.span(f)
			continue
		}
		e.out = append(e.out, f.raw...)
	}
}

func (e *edit) span(span field) {
	var traceID, tracestate []byte
	for f := range fields(span.content) {
		switch {
		case f.num == fieldSpanTraceID && f.message:
			traceID = f.content
		case f.num == fieldSpanTraceState && f.message:
			tracestate = f.content
		}
	}
	said := otlpdata.ParseSamplingBytes(tracestate)
	t, sampled := e.decide(traceID, said)
	if !sampled {
		return
	}
	e.kept++
	if said.HasThreshold && said.Threshold == t {
		e.out = append(e.out, span.raw...)
		return
	}
	e.state = otlpdata.AppendThreshold(e.state[:0], tracestate, t)
	room := protowire.SizeVarint(uint64(len(span.content)))
	var at int
	e.out, at = protoenc.BeginMessage(e.out, fieldSpans, room)
	for f := range fields(span.content) {
		if f.num != fieldSpanTraceState {
			e.out = append(e.out, f.raw...)
		}
	}
	e.out = protowire.AppendTag(e.out, fieldSpanTraceState, protowire.BytesType)
	e.out = protowire.AppendBytes(e.out, e.state)
	e.out = protoenc.EndMessage(e.out, at, room)
}

// field is one field of an encoded message.
type field struct {
	num     protowire.Number
	message bool   // it has a length: a message, or bytes
	raw     []byte // with its tag
	content []byte
}

// fields yields the fields of a message, and what is none as the last one, of number 0: nothing is
// lost on the way.
func fields(message []byte) iter.Seq[field] {
	return func(yield func(field) bool) {
		for len(message) > 0 {
			num, typ, tag := protowire.ConsumeTag(message)
			n := -1
			if tag >= 0 {
				n = protowire.ConsumeFieldValue(num, typ, message[tag:])
			}
			if n < 0 {
				yield(field{raw: message})
				return
			}
			f := field{num: num, raw: message[:tag+n], message: typ == protowire.BytesType}
			if f.message {
				f.content, _ = protowire.ConsumeBytes(message[tag:])
			}
			if message = message[tag+n:]; !yield(f) {
				return
			}
		}
	}
}
