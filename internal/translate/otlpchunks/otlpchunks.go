// Package otlpchunks writes spans as OTLP messages of bounded size: what a trace is sent as over
// gRPC, where one message of all its spans would be more than clients take.
package otlpchunks

import (
	"bytes"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// Writer writes spans as TracesData messages (opentelemetry-proto, trace/v1; the encoding is that
// of an ExportTraceServiceRequest), each with the resources and scopes of its spans. It is a
// visitor of otlpdata.Walk. Resources, scopes and spans are taken as they are encoded, or, where
// Raw is nil, as their other fields say. For users, text that is not UTF-8, which strict decoders
// refuse, is mended, and what is no attribute for them (otlpdata.FlagsAttribute) left out.
//
// The spans of a message are those between two calls of Finish, so that who calls it behind each
// trace has no message with spans of two. It holds one message at a time. Not for concurrent use.
type Writer struct {
	limit int
	exact bool // nothing is mended or left out
	send  func(message []byte) error

	resource, scope         []byte // the current ones, encoded
	resourceURL, scopeURL   string
	buf                     []byte
	resourceSpans, inScopes int // where the open messages begin in buf; 0: none is open
	spans                   int // in buf
	raw                     []byte
}

var _ otlpdata.Visitor = (*Writer)(nil)

// NewWriter returns a writer of messages for users of at most limit bytes, of which each is given
// to send, which must not keep it. A span that is larger by itself makes a message of its own. An
// error of send ends the walk and is returned.
func NewWriter(limit int, send func(message []byte) error) *Writer {
	return &Writer{limit: limit, send: send}
}

// Split gives the spans of segments to send, exactly as they are and in their order, in messages of
// at most limit bytes; a span that is larger by itself makes one of its own, and no spans make
// none. A message belongs to send, an error of which ends the work and is returned.
func Split(segments [][]byte, limit int, send func(message []byte, spans int) error) error {
	w := &Writer{limit: limit, exact: true}
	w.send = func(message []byte) error { return send(bytes.Clone(message), w.spans) }
	for _, segment := range segments {
		if err := otlpdata.Walk(segment, w); err != nil {
			return err
		}
	}
	return w.Finish()
}

// The fields of ResourceSpans, ScopeSpans and what they hold (reference 3.10). The two have the
// same numbers.
const (
	requestResourceSpans = 1

	describedBy = 1 // the resource, or the scope
	contains    = 2 // the scope spans, or the spans
	schemaURL   = 3

	resourceAttributes = 1
	resourceDropped    = 2

	scopeName       = 1
	scopeVersion    = 2
	scopeAttributes = 3
	scopeDropped    = 4
)

// room is for the lengths of messages of up to 2 MiB. Shorter ones are moved when they end.
const room = 3

// fieldCost is what a field takes at most besides its content, in bytes.
const fieldCost = 6

// Resource makes the resource the one of the spans that follow.
func (w *Writer) Resource(r *otlpdata.Resource) error {
	w.endResource()
	w.resourceURL = w.text(r.SchemaURL)
	asIs := w.exact || presentable(r.Attributes)
	if asIs && r.Raw != nil {
		w.resource = append(w.resource[:0], r.Raw...)
		return nil
	}
	attributes := r.Attributes
	if !asIs {
		attributes = mended(attributes)
	}
	w.resource = appendAttributes(w.resource[:0], resourceAttributes, attributes)
	w.resource = protoenc.AppendUint(w.resource, resourceDropped, uint64(r.DroppedAttributes))
	return nil
}

// Scope makes the scope the one of the spans that follow.
func (w *Writer) Scope(s *otlpdata.Scope) error {
	w.endScope()
	w.scopeURL = w.text(s.SchemaURL)
	asIs := w.exact || presentable(s.Attributes) && utf8.ValidString(s.Name) && utf8.ValidString(s.Version)
	if asIs && s.Raw != nil {
		w.scope = append(w.scope[:0], s.Raw...)
		return nil
	}
	attributes := s.Attributes
	if !asIs {
		attributes = mended(attributes)
	}
	w.scope = protoenc.AppendString(w.scope[:0], scopeName, w.text(s.Name))
	w.scope = protoenc.AppendString(w.scope, scopeVersion, w.text(s.Version))
	w.scope = appendAttributes(w.scope, scopeAttributes, attributes)
	w.scope = protoenc.AppendUint(w.scope, scopeDropped, uint64(s.DroppedAttributes))
	return nil
}

// Span writes the span, behind what is sent before it where there is no room.
func (w *Writer) Span(s *otlpdata.Span) error {
	if !w.exact && !presentableSpan(s) {
		s = mendedSpan(s)
	}
	raw := s.Raw
	if raw == nil {
		w.raw = otlpdata.AppendSpan(w.raw[:0], s)
		raw = w.raw
	}
	if len(w.buf) > 0 && len(w.buf)+w.around()+fieldCost+len(raw) > w.limit {
		if err := w.Finish(); err != nil {
			return err
		}
	}
	w.begin()
	w.buf = protoenc.AppendBytes(w.buf, contains, raw)
	w.spans++
	return nil
}

// text is text as it is written.
func (w *Writer) text(s string) string {
	if w.exact {
		return s
	}
	return text(s)
}

// around is how much goes before the next span and behind it at most.
func (w *Writer) around() int {
	n := len(w.resourceURL) + len(w.scopeURL) + 2*fieldCost
	if w.resourceSpans == 0 {
		n += len(w.resource) + 2*fieldCost
	}
	if w.inScopes == 0 {
		n += len(w.scope) + 2*fieldCost
	}
	return n + 2*fieldCost // lengths that turn out longer than room
}

// begin opens what the next span is in.
func (w *Writer) begin() {
	if w.resourceSpans == 0 {
		w.buf, w.resourceSpans = protoenc.BeginMessage(w.buf, requestResourceSpans, room)
		w.buf = protoenc.AppendBytes(w.buf, describedBy, w.resource)
	}
	if w.inScopes == 0 {
		w.buf, w.inScopes = protoenc.BeginMessage(w.buf, contains, room)
		w.buf = protoenc.AppendBytes(w.buf, describedBy, w.scope)
	}
}

func (w *Writer) endScope() {
	if w.inScopes > 0 {
		w.buf = protoenc.EndMessage(protoenc.AppendString(w.buf, schemaURL, w.scopeURL), w.inScopes, room)
		w.inScopes = 0
	}
}

func (w *Writer) endResource() {
	w.endScope()
	if w.resourceSpans > 0 {
		w.buf = protoenc.EndMessage(protoenc.AppendString(w.buf, schemaURL, w.resourceURL), w.resourceSpans, room)
		w.resourceSpans = 0
	}
}

// Finish sends what is not sent yet. Spans that follow are of the same resource and scope.
func (w *Writer) Finish() error {
	w.endResource()
	if len(w.buf) == 0 {
		return nil
	}
	message := w.buf
	w.buf = w.buf[:0]
	err := w.send(message)
	w.spans = 0
	return err
}

// appendAttributes appends attributes as fields of a number below 16, of which the tag is one byte.
func appendAttributes(dst []byte, num int, kvs []otlpdata.KeyValue) []byte {
	for i := range kvs {
		at := len(dst)
		dst = otlpdata.AppendAttributes(dst, kvs[i:i+1])
		dst[at] = byte(num<<3 | protoenc.Length)
	}
	return dst
}
