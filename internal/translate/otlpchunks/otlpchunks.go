// Package otlpchunks writes spans as OTLP messages of limited size, for gRPC responses: clients
// limit the size of a message, and a trace may be larger.
package otlpchunks

import (
	"bytes"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// Writer writes spans as TracesData messages (opentelemetry-proto, trace/v1, encoded like an
// ExportTraceServiceRequest), each with the resources and scopes of its spans. It is a visitor of
// otlpdata.Walk. It copies the encoded form of resources, scopes and spans, or encodes their fields
// if Raw is nil. A Writer for users replaces invalid UTF-8, which strict decoders reject, and
// leaves out otlpdata.FlagsAttribute.
//
// A message contains only spans between two calls of Finish, so calling Finish after each trace
// separates traces. The Writer holds one message in memory at a time. It is not safe for concurrent
// use.
type Writer struct {
	limit int
	exact bool // do not repair or leave out anything
	send  func(message []byte) error

	resource, scope         []byte // the current resource and scope, encoded
	resourceURL, scopeURL   string
	buf                     []byte
	resourceSpans, inScopes int // positions of the open messages in buf; 0 if none is open
	spans                   int // in buf
	raw                     []byte
}

var _ otlpdata.Visitor = (*Writer)(nil)

// NewWriter returns a writer of messages for users of at most limit bytes. It passes each message
// to send, which must not keep it. A span that is larger than limit gets its own message. An error
// of send ends the walk and is returned.
func NewWriter(limit int, send func(message []byte) error) *Writer {
	return &Writer{limit: limit, send: send}
}

// Split passes the spans of a batch to send, unchanged and in order, in messages of at most limit
// bytes. A span that is larger than limit gets its own message; without spans there is no message.
// send may keep the message. An error of send ends the walk and is returned.
func Split(b *otlpdata.Batch, limit int, send func(message []byte, spans int) error) error {
	w := &Writer{limit: limit, exact: true}
	w.send = func(message []byte) error { return send(bytes.Clone(message), w.spans) }
	if err := b.Walk(w); err != nil {
		return err
	}
	return w.Finish()
}

// Field numbers of ResourceSpans and ScopeSpans, which are the same, and of Resource and
// InstrumentationScope.
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

// reserved is the number of bytes reserved for the length of a message, exact for 16 KiB to 2 MiB.
// Shorter messages are moved when they end.
const reserved = 3

// fieldCost is the maximum size of a tag and a length, in bytes.
const fieldCost = 6

// Resource sets the resource of the spans that follow.
func (w *Writer) Resource(r *otlpdata.Resource) error {
	w.endResource()
	w.resourceURL = w.text(r.SchemaURL)
	asIs := w.exact || arePresentable(r.Attributes)
	if asIs && r.Raw != nil {
		w.resource = append(w.resource[:0], r.Raw...)
		return nil
	}
	attributes := r.Attributes
	if !asIs {
		attributes = repairedAttributes(attributes)
	}
	w.resource = appendAttributes(w.resource[:0], resourceAttributes, attributes)
	w.resource = protoenc.AppendUint(w.resource, resourceDropped, uint64(r.DroppedAttributes))
	return nil
}

// Scope sets the scope of the spans that follow.
func (w *Writer) Scope(s *otlpdata.Scope) error {
	w.endScope()
	w.scopeURL = w.text(s.SchemaURL)
	asIs := w.exact || arePresentable(s.Attributes) && utf8.ValidString(s.Name) && utf8.ValidString(s.Version)
	if asIs && s.Raw != nil {
		w.scope = append(w.scope[:0], s.Raw...)
		return nil
	}
	attributes := s.Attributes
	if !asIs {
		attributes = repairedAttributes(attributes)
	}
	w.scope = protoenc.AppendString(w.scope[:0], scopeName, w.text(s.Name))
	w.scope = protoenc.AppendString(w.scope, scopeVersion, w.text(s.Version))
	w.scope = appendAttributes(w.scope, scopeAttributes, attributes)
	w.scope = protoenc.AppendUint(w.scope, scopeDropped, uint64(s.DroppedAttributes))
	return nil
}

// Span writes the span. It sends the open message first if the span does not fit into it.
func (w *Writer) Span(s *otlpdata.Span) error {
	if !w.exact && !isPresentable(s) {
		s = repairedSpan(s)
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
	w.beginSpan()
	w.buf = protoenc.AppendBytes(w.buf, contains, raw)
	w.spans++
	return nil
}

// text returns the string in the form in which it is written.
func (w *Writer) text(s string) string {
	if w.exact {
		return s
	}
	return validText(s)
}

// around returns the maximum number of bytes before and after the next span.
func (w *Writer) around() int {
	n := len(w.resourceURL) + len(w.scopeURL) + 2*fieldCost
	if w.resourceSpans == 0 {
		n += len(w.resource) + 2*fieldCost
	}
	if w.inScopes == 0 {
		n += len(w.scope) + 2*fieldCost
	}
	return n + 2*fieldCost // lengths may be longer than reserved
}

// beginSpan opens the messages around the next span.
func (w *Writer) beginSpan() {
	if w.resourceSpans == 0 {
		w.buf, w.resourceSpans = protoenc.BeginMessage(w.buf, requestResourceSpans, reserved)
		w.buf = protoenc.AppendBytes(w.buf, describedBy, w.resource)
	}
	if w.inScopes == 0 {
		w.buf, w.inScopes = protoenc.BeginMessage(w.buf, contains, reserved)
		w.buf = protoenc.AppendBytes(w.buf, describedBy, w.scope)
	}
}

func (w *Writer) endScope() {
	if w.inScopes > 0 {
		w.buf = protoenc.EndMessage(protoenc.AppendString(w.buf, schemaURL, w.scopeURL), w.inScopes, reserved)
		w.inScopes = 0
	}
}

func (w *Writer) endResource() {
	w.endScope()
	if w.resourceSpans > 0 {
		w.buf = protoenc.EndMessage(protoenc.AppendString(w.buf, schemaURL, w.resourceURL), w.resourceSpans, reserved)
		w.resourceSpans = 0
	}
}

// Finish sends the open message, if there is one. The resource and scope remain set.
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

// AppendAttributes appends attributes as fields of a message, with a number below 16. Invalid text
// is replaced as in traces.
func AppendAttributes(dst []byte, num int, kvs []otlpdata.KeyValue) []byte {
	if !arePresentable(kvs) {
		kvs = repairedAttributes(kvs)
	}
	return appendAttributes(dst, num, kvs)
}

// appendAttributes appends attributes as fields with a number below 16, so that the tag takes one
// byte.
func appendAttributes(dst []byte, num int, kvs []otlpdata.KeyValue) []byte {
	for i := range kvs {
		at := len(dst)
		dst = otlpdata.AppendAttributes(dst, kvs[i:i+1])
		dst[at] = byte(num<<3 | protoenc.Length)
	}
	return dst
}
