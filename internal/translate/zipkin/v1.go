package zipkin

import (
	"bytes"
	"cmp"
	"sync"

	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// V1Growth bounds the memory that FromV1JSON and FromV1Thrift hold at once for n bytes, their output included: V1Growth*n + 64 KiB. That is
// for the worst of inputs; what applications send takes a few times its size.
//
// EmitZipkinGrowth bounds the output of FromEmitZipkinBatch: EmitZipkinGrowth*n bytes, for spans with nothing but mistakes to tell of.
// Those of applications grow to about twice their size.
const (
	V1Growth         = 40
	EmitZipkinGrowth = 16
)

// FromV1JSON translates a JSON array of v1 spans.
func FromV1JSON(b []byte, opt Options) ([]byte, error) {
	t := newV1Translator(opt)
	defer t.release()
	t.stampUntimed = true
	if err := t.readJSON(b); err != nil {
		return nil, err
	}
	return t.output(), nil
}

// FromV1Thrift translates a Thrift list of zipkincore spans in the binary protocol. What follows the list is ignored.
func FromV1Thrift(b []byte, opt Options) ([]byte, error) {
	t := newV1Translator(opt)
	defer t.release()
	r := v1ThriftReader{ThriftCursor: native.NewThriftCursor(b, native.Binary), value: t.httpValue}
	r.spans(&t.in, t.writeV1)
	if err := r.Err(); err != nil {
		return nil, err
	}
	return t.output(), nil
}

// FromEmitZipkinBatch translates the arguments of emitZipkinBatch. What follows them is ignored.
func FromEmitZipkinBatch(args []byte, enc native.Encoding) ([]byte, error) {
	t := newV1Translator(Options{})
	defer t.release()
	r := v1ThriftReader{ThriftCursor: native.NewThriftCursor(args, enc), value: t.agentValue}
	r.arguments(&t.in, t.writeAgent)
	if err := r.Err(); err != nil {
		return nil, err
	}
	return t.output(), nil
}

// v1Translator makes OTLP of v1 spans, one at a time: a reader fills in, one of the two sets of rules writes it.
type v1Translator struct {
	opt          Options
	stampUntimed bool // spans that tell no time get opt.Now
	spansLeft    int  // how many more the limit allows

	json scanner
	in   v1Span
	text []byte // strings that are not in the request, of the span at hand and the open resource

	span   otlpdata.Span
	fields []otlpdata.KeyValue // attributes of the span's events
	out    otlpdata.Builder

	// What the span before was written into.
	opened                  bool
	service                 v1Host              // by the rules for HTTP
	resource                []otlpdata.KeyValue // by those for UDP
	scopeName, scopeVersion string

	next []otlpdata.KeyValue // scratch: the resource of the span at hand
}

var v1Translators = sync.Pool{New: func() any { return new(v1Translator) }}

func newV1Translator(opt Options) *v1Translator {
	t := v1Translators.Get().(*v1Translator)
	t.opt = opt
	d := otlpdata.DefaultLimits()
	t.opt.Limits.Spans, t.in.limit = cmp.Or(opt.Limits.Spans, d.Spans), cmp.Or(opt.Limits.Items, d.Items)
	t.spansLeft = t.opt.Limits.Spans
	return t
}

// release gives the translator back. The pool must not keep the request alive, nor what a large one needed.
func (t *v1Translator) release() {
	const keep, keepBytes = 4096, 1 << 20
	s, in := &t.span, &t.in
	if cap(in.annotations) > keep || cap(in.tags) > keep || cap(in.hosts) > keep || cap(s.Attributes) > keep || cap(s.Events) > keep ||
		cap(s.Links) > keep || cap(t.fields) > keep || cap(t.resource) > keep || cap(t.next) > keep || cap(t.text) > keepBytes ||
		cap(t.json.text) > keepBytes || cap(t.out.Bytes()) > keepBytes {
		return
	}
	t.out.Reset()
	t.json.reset(nil)
	*t = v1Translator{
		json: t.json, text: t.text[:0], out: t.out, fields: forget(t.fields), resource: forget(t.resource), next: forget(t.next),
		in:   v1Span{annotations: forget(in.annotations), tags: forget(in.tags), hosts: forget(in.hosts)},
		span: otlpdata.Span{Attributes: forget(s.Attributes), Events: forget(s.Events), Links: forget(s.Links)},
	}
	v1Translators.Put(t)
}

// forget empties a slice such that it keeps nothing but its own memory.
func forget[T any](s []T) []T {
	clear(s[:cap(s)])
	return s[:0]
}

// output returns what was translated. It has memory of its own, of the right size: requests wait in queues.
func (t *v1Translator) output() []byte { return bytes.Clone(t.out.Bytes()) }

// Native flags of debug spans. In B3 they are sampled as well; the rules for UDP (reference 5.7) set the one flag alone.
const (
	debugOverHTTP = otlpdata.FlagSampled | otlpdata.FlagDebug
	debugOverUDP  = otlpdata.FlagDebug
)

// beginSpan begins to write a span with what is the same by all rules, unless there were too many. debug are the flags of a debug span.
func (t *v1Translator) beginSpan(debug uint32) error {
	if t.spansLeft--; t.spansLeft < 0 {
		return &otlpdata.LimitError{Limit: "spans in one request", Max: t.opt.Limits.Spans, TooLarge: true}
	}
	in, out := &t.in, &t.span
	resetSpan(out)
	t.fields = t.fields[:0]
	out.TraceID, out.SpanID, out.ParentID, out.Name, out.DroppedAttributes = in.traceID, in.id, in.parent, in.name, in.droppedTags
	if in.debug || t.opt.Debug {
		out.Attributes = append(out.Attributes, intTag(otlpdata.FlagsAttribute, int64(debug)))
	}
	return nil
}

// endSpan writes the span. Where texts were made for many spans, they are given up, and with them the open resource, which may hold some.
func (t *v1Translator) endSpan() {
	t.out.Span(&t.span)
	const muchText = 64 << 10
	if len(t.text) > muchText {
		t.text, t.opened = t.text[:0], false
	}
}

// resetSpan empties the span and keeps its memory.
func resetSpan(s *otlpdata.Span) {
	*s = otlpdata.Span{Attributes: s.Attributes[:0], Events: s.Events[:0], Links: s.Links[:0]}
}

func text(key, value string) otlpdata.KeyValue {
	return otlpdata.KeyValue{Key: key, Value: otlpdata.StringValue(value)}
}

func intTag(key string, n int64) otlpdata.KeyValue {
	return otlpdata.KeyValue{Key: key, Value: otlpdata.IntValue(n)}
}
