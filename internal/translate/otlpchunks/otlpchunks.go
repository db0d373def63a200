// Package otlpchunks writes spans as OTLP messages of bounded size: what a trace is sent as over gRPC, where one message of all its spans
// would be more than clients take.
package otlpchunks

import (
	"encoding/binary"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Writer writes spans as TracesData messages (opentelemetry-proto, trace/v1; the encoding is that of an ExportTraceServiceRequest), each
// with the resources and scopes of its spans. It is a visitor of otlpdata.Walk. Resources, scopes and spans are taken as they are encoded,
// or, where Raw is nil, as their other fields say; but text that is not UTF-8, which strict decoders refuse, is mended, and what is no
// attribute for users (otlpdata.FlagsAttribute) left out.
//
// The spans of a message are those between two calls of Finish, so that who calls it behind each trace has no message with spans of two.
// It holds one message at a time. Not for concurrent use.
type Writer struct {
	limit int
	send  func(message []byte) error

	resource, scope         []byte // the current ones, encoded
	resourceURL, scopeURL   string
	buf                     []byte
	resourceSpans, inScopes int // where the open messages begin in buf; 0: none is open
	raw                     []byte
}

var _ otlpdata.Visitor = (*Writer)(nil)

// NewWriter returns a writer of messages of about limit bytes, of which each is given to send, which must not keep it: more than limit are
// only those of one span, and by the lengths of two messages others may be. An error of send ends the walk and is returned.
func NewWriter(limit int, send func(message []byte) error) *Writer {
	return &Writer{limit: limit, send: send}
}

// The fields of ResourceSpans, ScopeSpans and what they hold (reference 3.10). The two have the same numbers.
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

// Resource makes the resource the one of the spans that follow.
func (w *Writer) Resource(r *otlpdata.Resource) error {
	w.endResource()
	w.resourceURL = text(r.SchemaURL)
	asIs := presentable(r.Attributes)
	if asIs && r.Raw != nil {
		w.resource = append(w.resource[:0], r.Raw...)
		return nil
	}
	attributes := r.Attributes
	if !asIs {
		attributes = mended(attributes)
	}
	w.resource = appendAttributes(w.resource[:0], resourceAttributes, attributes)
	w.resource = appendCount(w.resource, resourceDropped, r.DroppedAttributes)
	return nil
}

// Scope makes the scope the one of the spans that follow.
func (w *Writer) Scope(s *otlpdata.Scope) error {
	w.endScope()
	w.scopeURL = text(s.SchemaURL)
	asIs := presentable(s.Attributes) && utf8.ValidString(s.Name) && utf8.ValidString(s.Version)
	if asIs && s.Raw != nil {
		w.scope = append(w.scope[:0], s.Raw...)
		return nil
	}
	attributes := s.Attributes
	if !asIs {
		attributes = mended(attributes)
	}
	w.scope = appendText(w.scope[:0], scopeName, text(s.Name))
	w.scope = appendText(w.scope, scopeVersion, text(s.Version))
	w.scope = appendAttributes(w.scope, scopeAttributes, attributes)
	w.scope = appendCount(w.scope, scopeDropped, s.DroppedAttributes)
	return nil
}

// Span writes the span, behind what is sent before it where there is no room.
func (w *Writer) Span(s *otlpdata.Span) error {
	if !presentableSpan(s) {
		s = mendedSpan(s)
	}
	raw := s.Raw
	if raw == nil {
		w.raw = otlpdata.AppendSpan(w.raw[:0], s)
		raw = w.raw
	}
	if len(w.buf) > 0 && len(w.buf)+w.headers()+len(raw) > w.limit {
		if err := w.Finish(); err != nil {
			return err
		}
	}
	w.begin()
	w.buf = appendField(w.buf, contains, raw)
	return nil
}

// headers is how much goes before the next span.
func (w *Writer) headers() int {
	n := 0
	if w.resourceSpans == 0 {
		n += len(w.resource) + len(w.resourceURL)
	}
	if w.inScopes == 0 {
		n += len(w.scope) + len(w.scopeURL)
	}
	return n
}

// begin opens what the next span is in.
func (w *Writer) begin() {
	if w.resourceSpans == 0 {
		w.buf, w.resourceSpans = otlpdata.BeginMessage(w.buf, requestResourceSpans, room)
		w.buf = appendField(w.buf, describedBy, w.resource)
	}
	if w.inScopes == 0 {
		w.buf, w.inScopes = otlpdata.BeginMessage(w.buf, contains, room)
		w.buf = appendField(w.buf, describedBy, w.scope)
	}
}

func (w *Writer) endScope() {
	if w.inScopes > 0 {
		w.buf = otlpdata.EndMessage(appendText(w.buf, schemaURL, w.scopeURL), w.inScopes, room)
		w.inScopes = 0
	}
}

func (w *Writer) endResource() {
	w.endScope()
	if w.resourceSpans > 0 {
		w.buf = otlpdata.EndMessage(appendText(w.buf, schemaURL, w.resourceURL), w.resourceSpans, room)
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
	return w.send(message)
}

// appendAttributes appends attributes as fields of a number below 16, of which the tag is one byte.
func appendAttributes(dst []byte, num int, kvs []otlpdata.KeyValue) []byte {
	for i := range kvs {
		at := len(dst)
		dst = otlpdata.AppendAttributes(dst, kvs[i:i+1])
		dst[at] = tag(num)
	}
	return dst
}

func tag(num int) byte { return byte(num<<3 | 2) }

func appendField(dst []byte, num int, b []byte) []byte {
	return append(binary.AppendUvarint(append(dst, tag(num)), uint64(len(b))), b...)
}

func appendText(dst []byte, num int, s string) []byte {
	if s == "" {
		return dst
	}
	return append(binary.AppendUvarint(append(dst, tag(num)), uint64(len(s))), s...)
}

func appendCount(dst []byte, num int, n uint32) []byte {
	if n == 0 {
		return dst
	}
	return binary.AppendUvarint(append(dst, byte(num<<3)), uint64(n))
}
