package zipkin

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"sync"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// translator translates one v2 request. A reader of either encoding fills span, local, remote and
// debug: tags become attributes, annotations become events, and the duration is stored in End.
// write then interprets them, encodes the span and adds it to its group. finish writes the groups.
type translator struct {
	opt Options

	span          otlpdata.Span
	local, remote endpoint
	debug         bool

	doc        scanner             // the request
	packed     scanner             // JSON in annotations and tags of the span
	text       []byte              // strings of the span that are not in the request
	links      []numberedLink      // of the span
	attributes []otlpdata.KeyValue // of events and links of the span

	groups   grouping
	resource []otlpdata.KeyValue // resource tags of all spans
	encoded  []byte              // all spans
	out      otlpdata.Builder
}

// maxPooledRequest is the maximum size in bytes of a request whose translator is reused. A pooled
// translator keeps its memory and the request. For larger requests the cost of a new translator is
// negligible.
const maxPooledRequest = 256 << 10

// translators are idle translators.
var translators = sync.Pool{New: func() any { return new(translator) }}

func translate(b []byte, opt *Options, read func(*translator, []byte) error) ([]byte, error) {
	t := translators.Get().(*translator)
	t.reset(opt)
	err := read(t, b)
	var out []byte
	if err == nil {
		out = bytes.Clone(t.finish())
	}
	if len(b) <= maxPooledRequest {
		translators.Put(t)
	}
	return out, err
}

func (t *translator) reset(opt *Options) {
	d := otlpdata.DefaultLimits()
	t.opt = *opt
	t.opt.Limits.Spans = cmp.Or(opt.Limits.Spans, d.Spans)
	t.opt.Limits.Items = cmp.Or(opt.Limits.Items, d.Items)
	t.doc.reset(nil)
	t.resource, t.encoded = t.resource[:0], t.encoded[:0]
	t.groups.reset()
	t.out.Reset()
}

// beginSpan prepares for the next span.
func (t *translator) beginSpan() {
	resetSpan(&t.span)
	t.local, t.remote, t.debug = endpoint{}, endpoint{}, t.opt.Debug
	t.packed.reset(nil)
	t.text, t.links, t.attributes = t.text[:0], t.links[:0], t.attributes[:0]
}

// tag adds a tag as an attribute.
func (t *translator) tag(key, value string) error {
	if len(t.span.Attributes) >= t.opt.Limits.Items {
		return t.tooManyItems()
	}
	t.span.Attributes = append(t.span.Attributes, text(key, value))
	return nil
}

// annotate adds an annotation as an event, unless it is empty. write unpacks its value.
func (t *translator) annotate(micros int64, value string) error {
	if micros == 0 && value == "" {
		return nil
	}
	if len(t.span.Events) >= t.opt.Limits.Items {
		return t.tooManyItems()
	}
	t.span.Events = append(t.span.Events, otlpdata.Event{Time: nanos(micros), Name: value})
	return nil
}

func (t *translator) tooManyItems() error {
	return &otlpdata.LimitError{Limit: "tags or annotations of one span", Max: t.opt.Limits.Items}
}

var errSpanID = errors.New("valid span id required")

// write completes the current span.
func (t *translator) write() error {
	s := &t.span
	if s.SpanID.IsZero() {
		return errSpanID
	}
	if t.groups.spans() >= t.opt.Limits.Spans {
		return &otlpdata.LimitError{Limit: "spans in one request", Max: t.opt.Limits.Spans, TooLarge: true}
	}
	if s.ParentID == s.SpanID {
		s.ParentID = otlpdata.SpanID{}
	}
	from := len(t.resource)
	g := t.readTags()
	t.unpackEvents()
	t.unpackLinks()
	s.Attributes = t.appendEndpoint(s.Attributes, &t.local, &localKeys)
	s.Attributes = t.appendEndpoint(s.Attributes, &t.remote, &remoteKeys)
	if s.Start == 0 {
		s.Attributes = append(s.Attributes, otlpdata.KeyValue{Key: absentStartTime, Value: otlpdata.BoolValue(true)})
	}
	s.End = min(s.Start+s.End, math.MaxInt64)
	if t.debug {
		s.Attributes = append(s.Attributes, intTag(otlpdata.FlagsAttribute, int64(debugOverHTTP)))
	}
	at := len(t.encoded)
	t.encoded = otlpdata.AppendSpan(t.encoded, s)
	t.groups.addSpan(g, groupedSpan{from: at, to: len(t.encoded), resource: from, resourceEnd: len(t.resource)})
	return nil
}

// nanos converts microseconds to nanoseconds. Negative values become 0; values that are too large
// become the largest possible.
func nanos(micros int64) uint64 {
	const maxMicros = math.MaxInt64 / 1000
	return uint64(min(max(micros, 0), maxMicros)) * 1000
}
