package otlpdata

import "github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"

// Builder writes one encoded ExportTraceServiceRequest span by span: a resource, a scope, its
// spans, the next scope or resource, and so on. Translators from other wire formats use it to make
// the payload of a [Batch] without objects. The zero value is ready to use. Reset prepares the
// Builder for the next request and keeps its memory. A Builder must not be used concurrently.
type Builder struct {
	buf      []byte
	resource int // position of the content of the open resource; 0 if none is open
	scope    int // position of the content of the open scope; 0 if none is open
}

// Bytes that are reserved for lengths. If the content has another size than expected, it is moved
// once when it is complete, which is cheap for small contents.
const (
	groupLength = 3 // of a resource or a scope: exact for 16 KiB to 2 MiB
	spanLength  = 2 // exact for 128 bytes to 16 KiB
)

// Reset empties the Builder.
func (b *Builder) Reset() { b.buf, b.resource, b.scope = b.buf[:0], 0, 0 }

// Resource starts a resource. The scopes and spans that follow belong to it.
func (b *Builder) Resource(attributes []KeyValue) {
	b.closeResource()
	b.buf, b.resource = protoenc.BeginMessage(b.buf, 1, groupLength)
	b.buf = protoenc.AppendHeader(b.buf, 1, attributesSize(attributes))
	b.buf = appendAttributes(b.buf, 1, attributes)
}

// Scope starts a scope of the current resource. The spans that follow belong to it.
func (b *Builder) Scope(name, version string, attributes []KeyValue) {
	b.closeScope()
	b.buf, b.scope = protoenc.BeginMessage(b.buf, 2, groupLength)
	if n := protoenc.SizeString(name) + protoenc.SizeString(version) + attributesSize(attributes); n > 0 {
		b.buf = protoenc.AppendHeader(b.buf, 1, n)
		b.buf = protoenc.AppendString(protoenc.AppendString(b.buf, 1, name), 2, version)
		b.buf = appendAttributes(b.buf, 3, attributes)
	}
}

// Span writes a span into the current scope. If the resource has no scope yet, Span starts one
// without a name. s.Raw is ignored.
func (b *Builder) Span(s *Span) {
	if b.scope == 0 {
		b.Scope("", "", nil)
	}
	buf, at := protoenc.BeginMessage(b.buf, 2, spanLength)
	b.buf = protoenc.EndMessage(AppendSpan(buf, s), at, spanLength)
}

// Encoded is like Span, for a span that [AppendSpan] has encoded.
func (b *Builder) Encoded(span []byte) {
	if b.scope == 0 {
		b.Scope("", "", nil)
	}
	b.buf = protoenc.AppendBytes(b.buf, 2, span)
}

// Len returns the approximate size of the request so far, in bytes.
func (b *Builder) Len() int { return len(b.buf) }

// Bytes completes and returns the request. The slice is valid until Reset.
func (b *Builder) Bytes() []byte {
	b.closeResource()
	return b.buf
}

func (b *Builder) closeResource() {
	b.closeScope()
	if b.resource > 0 {
		b.buf, b.resource = protoenc.EndMessage(b.buf, b.resource, groupLength), 0
	}
}

func (b *Builder) closeScope() {
	if b.scope > 0 {
		b.buf, b.scope = protoenc.EndMessage(b.buf, b.scope, groupLength), 0
	}
}
