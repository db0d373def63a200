package zipkin

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"sync"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// translator makes OTLP of one v2 request. A reader of either encoding fills span, local, remote and debug with what the wire says of one
// span: its tags are attributes, its annotations events, its duration the end. write then gives them the meaning they have in OTLP,
// encodes the span, and puts it to its group; finish writes the groups.
type translator struct {
	opt Options

	span          otlpdata.Span
	local, remote endpoint
	debug         bool

	doc        scanner             // the request
	packed     scanner             // JSON within annotations and tags of the span
	text       []byte              // text made for the span
	links      []numberedLink      // of the span
	attributes []otlpdata.KeyValue // of events and links of the span

	groups   grouping
	resource []otlpdata.KeyValue // of all spans: tags about what produced them
	encoded  []byte              // all spans
	out      otlpdata.Builder
}

// keptRequest is the largest request, in bytes, whose translator is used again: what one has grown to, it keeps, and the request with it.
// For larger ones a new one costs little.
const keptRequest = 256 << 10

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
	if len(b) <= keptRequest {
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

// begin makes ready for the next span.
func (t *translator) begin() {
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

// annotate adds an annotation as an event, unless it says nothing. Its value may be packed, which write sees to.
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

// write ends the span that was read.
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
	t.groups.add(g, groupedSpan{from: at, to: len(t.encoded), resource: from, resourceEnd: len(t.resource)})
	return nil
}

// nanos converts a time or a duration. What is below zero is absent, and what is too large for a time in OTLP the greatest that is not.
func nanos(micros int64) uint64 {
	const most = math.MaxInt64 / 1000
	return uint64(min(max(micros, 0), most)) * 1000
}
