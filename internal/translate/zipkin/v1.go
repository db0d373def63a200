package zipkin

import (
	"bytes"
	"cmp"
	"sync"

	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Limits for inputs of n bytes. FromV1JSON and FromV1Thrift hold at most V1Growth*n bytes + 64 KiB
// in memory, including their output; ordinary requests take a few times their size. The output of
// FromEmitZipkinBatch has at most EmitZipkinGrowth*n bytes, which only spans with many repairs
// reach; the output for ordinary requests is about twice the input.
const (
	V1Growth         = 40
	EmitZipkinGrowth = 16
)

// FromV1JSON translates a JSON array of v1 spans.
func FromV1JSON(b []byte, opt Options) ([]byte, error) {
	t := newV1Translator(opt)
	defer t.release()
	t.useNow = true
	if err := t.readJSON(b); err != nil {
		return nil, err
	}
	return t.output(), nil
}

// FromV1Thrift translates a Thrift list of zipkincore spans in the binary protocol. Bytes after the
// list are ignored.
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

// FromEmitZipkinBatch translates the arguments of emitZipkinBatch. Bytes after them are ignored.
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

// v1Translator writes v1 spans as OTLP, one at a time: a reader sets the field `in`, then writeV1
// or writeAgent writes the span.
type v1Translator struct {
	opt       Options
	useNow    bool // spans without any time start at opt.Now
	spansLeft int  // remaining number of spans

	json scanner
	in   v1Span
	text []byte // strings of the current span and resource that are not in the request

	span   otlpdata.Span
	fields []otlpdata.KeyValue // attributes of the span's events
	out    otlpdata.Builder

	// The open resource and scope.
	opened                  bool
	service                 v1Host              // for HTTP
	resource                []otlpdata.KeyValue // for UDP
	scopeName, scopeVersion string

	next []otlpdata.KeyValue // reused: the resource of the current span
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

// release returns the translator to the pool, unless it has grown large, and without references to
// the request.
func (t *v1Translator) release() {
	const maxPooled, maxPooledBytes = 4096, 1 << 20
	s, in := &t.span, &t.in
	if cap(in.annotations) > maxPooled || cap(in.tags) > maxPooled || cap(in.hosts) > maxPooled || cap(s.Attributes) > maxPooled ||
		cap(s.Events) > maxPooled ||
		cap(s.Links) > maxPooled || cap(t.fields) > maxPooled || cap(t.resource) > maxPooled || cap(t.next) > maxPooled ||
		cap(t.text) > maxPooledBytes ||
		cap(t.json.text) > maxPooledBytes || cap(t.out.Bytes()) > maxPooledBytes {
		return
	}
	t.out.Reset()
	t.json.reset(nil)
	*t = v1Translator{
		json: t.json, text: t.text[:0], out: t.out, fields: reuse(t.fields), resource: reuse(t.resource), next: reuse(t.next),
		in:   v1Span{annotations: reuse(in.annotations), tags: reuse(in.tags), hosts: reuse(in.hosts)},
		span: otlpdata.Span{Attributes: reuse(s.Attributes), Events: reuse(s.Events), Links: reuse(s.Links)},
	}
	v1Translators.Put(t)
}

// reuse clears and empties a slice and keeps its memory.
func reuse[T any](s []T) []T {
	clear(s[:cap(s)])
	return s[:0]
}

// output returns a copy of the translated request, exactly as large as necessary, because requests
// may wait in queues.
func (t *v1Translator) output() []byte { return bytes.Clone(t.out.Bytes()) }

// Jaeger's flags for debug spans. In B3 a debug span is also sampled, but the original agent sets
// only the debug flag.
const (
	debugOverHTTP = otlpdata.FlagSampled | otlpdata.FlagDebug
	debugOverUDP  = otlpdata.FlagDebug
)

// beginSpan sets the fields of t.span that all inputs share. It returns an error if there are too
// many spans. debug are the flags of a debug span.
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

// endSpan writes the span. If t.text has grown large, it is emptied, and the open resource, which
// may refer to it, is closed.
func (t *v1Translator) endSpan() {
	t.out.Span(&t.span)
	const maxText = 64 << 10
	if len(t.text) > maxText {
		t.text, t.opened = t.text[:0], false
	}
}

// resetSpan clears the span and keeps its memory.
func resetSpan(s *otlpdata.Span) {
	*s = otlpdata.Span{Attributes: s.Attributes[:0], Events: s.Events[:0], Links: s.Links[:0]}
}

func text(key, value string) otlpdata.KeyValue {
	return otlpdata.KeyValue{Key: key, Value: otlpdata.StringValue(value)}
}

func intTag(key string, n int64) otlpdata.KeyValue {
	return otlpdata.KeyValue{Key: key, Value: otlpdata.IntValue(n)}
}
