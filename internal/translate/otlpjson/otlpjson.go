// Package otlpjson writes spans as OTLP JSON (opentelemetry-proto, "JSON Protobuf Encoding"): ids
// in hex, 64-bit numbers as strings, enums as numbers, default values left out. Invalid UTF-8 is
// replaced with U+FFFD. The attribute with Jaeger's flags (otlpdata.FlagsAttribute) is left out.
package otlpjson

import (
	"encoding/hex"
	"strconv"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Writer writes the elements of a list `resourceSpans`. It is a visitor of a walk. It appends to
// Buf. The zero value begins a list. Resources and scopes without spans are left out. A Writer is
// not safe for concurrent use.
type Writer struct {
	Buf []byte
	// Flush, if set, is called with Buf after every span. It may consume the bytes and returns the
	// buffer to append to. Its error ends the walk.
	Flush func(dst []byte) ([]byte, error)

	// Text before and after the scopes of the current resource and the spans of the current scope.
	resource, scope       []byte
	resourceEnd, scopeEnd []byte

	state     state
	resources int // in the list
}

// state is what is open in Buf.
type state uint8

const (
	outside    state = iota
	inResource       // in its list of scopes, which is not empty
	inScope          // in its list of spans, which is not empty
)

var _ otlpdata.Visitor = (*Writer)(nil)

// Resource ends the previous resource and keeps this one until it has a span.
func (w *Writer) Resource(r *otlpdata.Resource) error {
	w.End()
	dst := append(w.resource[:0], `{"resource":{`...)
	dst = appendAttributes(dst, r.Attributes)
	dst = appendCount(dst, "droppedAttributesCount", r.DroppedAttributes)
	w.resource = append(dst, `},"scopeSpans":[`...)
	w.resourceEnd = append(appendText(append(w.resourceEnd[:0], ']'), "schemaUrl", r.SchemaURL), '}')
	return nil
}

// Scope ends the previous scope and keeps this one until it has a span.
func (w *Writer) Scope(s *otlpdata.Scope) error {
	w.endScope()
	dst := append(w.scope[:0], `{"scope":{`...)
	dst = appendText(dst, "name", s.Name)
	dst = appendText(dst, "version", s.Version)
	dst = appendAttributes(dst, s.Attributes)
	dst = appendCount(dst, "droppedAttributesCount", s.DroppedAttributes)
	w.scope = append(dst, `},"spans":[`...)
	w.scopeEnd = append(appendText(append(w.scopeEnd[:0], ']'), "schemaUrl", s.SchemaURL), '}')
	return nil
}

// Span writes a span.
func (w *Writer) Span(s *otlpdata.Span) (err error) {
	w.open()
	w.Buf = appendSpan(w.Buf, s)
	if w.Flush != nil {
		w.Buf, err = w.Flush(w.Buf)
	}
	return err
}

// open begins the resource and scope of the next span if necessary, and writes a comma.
func (w *Writer) open() {
	switch w.state {
	case outside:
		if w.resources > 0 {
			w.Buf = append(w.Buf, ',')
		}
		w.resources++
		w.Buf = append(append(w.Buf, w.resource...), w.scope...)
	case inResource:
		w.Buf = append(append(w.Buf, ','), w.scope...)
	case inScope:
		w.Buf = append(w.Buf, ',')
	}
	w.state = inScope
}

func (w *Writer) endScope() {
	if w.state == inScope {
		w.Buf = append(w.Buf, w.scopeEnd...)
		w.state = inResource
	}
}

// End ends the open scope and resource. The Writer may be used for another walk.
func (w *Writer) End() {
	w.endScope()
	if w.state == inResource {
		w.Buf = append(w.Buf, w.resourceEnd...)
		w.state = outside
	}
}

func appendSpan(dst []byte, s *otlpdata.Span) []byte {
	dst = append(dst, `{"traceId":"`...)
	dst = hex.AppendEncode(dst, s.TraceID[:])
	dst = append(dst, `","spanId":"`...)
	dst = append(hex.AppendEncode(dst, s.SpanID[:]), '"')
	dst = appendText(dst, "traceState", s.TraceState)
	if !s.ParentID.IsZero() {
		dst = append(dst, `,"parentSpanId":"`...)
		dst = append(hex.AppendEncode(dst, s.ParentID[:]), '"')
	}
	dst = appendCount(dst, "flags", s.Flags)
	dst = appendText(dst, "name", s.Name)
	dst = appendNumber(dst, "kind", s.Kind)
	dst = appendTime(dst, "startTimeUnixNano", s.Start)
	dst = appendTime(dst, "endTimeUnixNano", s.End)
	dst = appendAttributes(dst, s.Attributes)
	dst = appendCount(dst, "droppedAttributesCount", s.DroppedAttributes)
	dst = appendEvents(dst, s.Events)
	dst = appendCount(dst, "droppedEventsCount", s.DroppedEvents)
	dst = appendLinks(dst, s.Links)
	dst = appendCount(dst, "droppedLinksCount", s.DroppedLinks)
	dst = append(dst, `,"status":{`...)
	dst = appendText(dst, "message", s.StatusMessage)
	dst = appendNumber(dst, "code", s.StatusCode)
	return append(dst, "}}"...)
}

func appendEvents(dst []byte, events []otlpdata.Event) []byte {
	if len(events) == 0 {
		return dst
	}
	dst = append(dst, `,"events":[`...)
	for i := range events {
		e := &events[i]
		dst = append(separate(dst), '{')
		dst = appendTime(dst, "timeUnixNano", e.Time)
		dst = appendText(dst, "name", e.Name)
		dst = appendAttributes(dst, e.Attributes)
		dst = append(appendCount(dst, "droppedAttributesCount", e.DroppedAttributes), '}')
	}
	return append(dst, ']')
}

func appendLinks(dst []byte, links []otlpdata.Link) []byte {
	if len(links) == 0 {
		return dst
	}
	dst = append(dst, `,"links":[`...)
	for i := range links {
		l := &links[i]
		dst = append(separate(dst), `{"traceId":"`...)
		dst = hex.AppendEncode(dst, l.TraceID[:])
		dst = append(dst, `","spanId":"`...)
		dst = append(hex.AppendEncode(dst, l.SpanID[:]), '"')
		dst = appendText(dst, "traceState", l.TraceState)
		dst = appendAttributes(dst, l.Attributes)
		dst = appendCount(dst, "droppedAttributesCount", l.DroppedAttributes)
		dst = append(appendCount(dst, "flags", l.Flags), '}')
	}
	return append(dst, ']')
}

// separate appends the comma before a member or an element, unless it is the first.
func separate(dst []byte) []byte {
	if last := dst[len(dst)-1]; last == '{' || last == '[' {
		return dst
	}
	return append(dst, ',')
}

// member appends the name of a member of an object that begins in dst.
func member(dst []byte, name string) []byte {
	dst = append(append(separate(dst), '"'), name...)
	return append(dst, `":`...)
}

func appendText(dst []byte, name, text string) []byte {
	if text == "" {
		return dst
	}
	return otlpdata.AppendJSONString(member(dst, name), text)
}

func appendCount(dst []byte, name string, n uint32) []byte {
	if n == 0 {
		return dst
	}
	return strconv.AppendUint(member(dst, name), uint64(n), 10)
}

func appendNumber(dst []byte, name string, n int32) []byte {
	if n == 0 {
		return dst
	}
	return strconv.AppendInt(member(dst, name), int64(n), 10)
}

func appendTime(dst []byte, name string, ns uint64) []byte {
	if ns == 0 {
		return dst
	}
	dst = append(member(dst, name), '"')
	return append(strconv.AppendUint(dst, ns, 10), '"')
}
