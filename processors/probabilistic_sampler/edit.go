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
	fieldOldScopeSpans  = 1000 // deprecated number of ScopeSpans, still accepted
	fieldSpans          = 2
	fieldSpanTraceID    = 1
	fieldSpanTraceState = 3
)

// maxGrowth is the maximum number of bytes that a threshold adds to a span: a field with `ot=th:`
// and 14 digits, and longer lengths of the enclosing messages.
const maxGrowth = 48

// edit copies encoded requests without the spans that are not sampled. It changes the tracestate of
// sampled spans if necessary and copies all other fields without decoding them.
type edit struct {
	sampler *sampler
	out     []byte
	state   []byte // scratch
	kept    int
}

func (e *edit) request(chunk []byte) {
	for f := range fields(chunk) {
		if f.num != fieldResourceSpans || !f.message {
			e.out = append(e.out, f.raw...)
			continue
		}
		e.nested(fieldResourceSpans, f.content, e.resourceSpans)
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
	state := otlpdata.ParseSamplingBytes(tracestate)
	t, sampled := e.sampler.decide(traceID, state)
	if !sampled {
		return
	}
	e.kept++
	if state.HasThreshold && state.Threshold == t {
		e.out = append(e.out, span.raw...)
		return
	}
	e.state = otlpdata.AppendThreshold(e.state[:0], tracestate, t)
	reserved := protowire.SizeVarint(uint64(len(span.content)))
	var at int
	e.out, at = protoenc.BeginMessage(e.out, fieldSpans, reserved)
	for f := range fields(span.content) {
		if f.num != fieldSpanTraceState {
			e.out = append(e.out, f.raw...)
		}
	}
	e.out = protowire.AppendTag(e.out, fieldSpanTraceState, protowire.BytesType)
	e.out = protowire.AppendBytes(e.out, e.state)
	e.out = protoenc.EndMessage(e.out, at, reserved)
}

// field is a field of an encoded message.
type field struct {
	num     protowire.Number
	message bool   // length-delimited: a message, a string or bytes
	raw     []byte // including the tag
	content []byte
}

// fields yields the fields of a message. If the rest of the message is invalid, it is yielded as a
// field with number 0, so that a copy is complete.
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
