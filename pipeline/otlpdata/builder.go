package otlpdata

import "encoding/binary"

// Builder writes one encoded ExportTraceServiceRequest span by span: a resource, a scope, its spans, the next scope or resource, and so on.
// It is how translators from other wire formats make the payload of a [Batch] without objects. The zero value is ready; Reset makes it
// ready for the next request and keeps the memory. Not for concurrent use.
type Builder struct {
	buf      []byte
	resource int // where the content of the open resource begins; 0: none is open
	scope    int // where the content of the open scope begins; 0: none is open
}

// lengthRoom is left for the length of a resource or scope: right for contents of 16 KiB to 2 MiB. Others are moved once they are
// complete, which costs little when they are small.
const lengthRoom = 3

// Reset forgets what was written.
func (b *Builder) Reset() { b.buf, b.resource, b.scope = b.buf[:0], 0, 0 }

// Resource begins a resource with these attributes. Scopes and spans that follow are its.
func (b *Builder) Resource(attributes []KeyValue) {
	b.closeResource()
	b.buf, b.resource = BeginMessage(b.buf, 1, lengthRoom)
	b.buf = appendHead(b.buf, 1, attributesSize(attributes))
	b.buf = appendAttributes(b.buf, 1, attributes)
}

// Scope begins a scope of the resource that was begun last. Spans that follow are its.
func (b *Builder) Scope(name, version string, attributes []KeyValue) {
	b.closeScope()
	b.buf, b.scope = BeginMessage(b.buf, 2, lengthRoom)
	if n := textSize(name) + textSize(version) + attributesSize(attributes); n > 0 {
		b.buf = appendHead(b.buf, 1, n)
		b.buf = appendText(appendText(b.buf, 1, name), 2, version)
		b.buf = appendAttributes(b.buf, 3, attributes)
	}
}

// Span writes a span into the scope that was begun last, one without a name if none was. s.Raw is not looked at.
func (b *Builder) Span(s *Span) {
	if b.scope == 0 {
		b.Scope("", "", nil)
	}
	const spanRoom = 2 // right for 128 bytes to 16 KiB
	buf, at := BeginMessage(b.buf, 2, spanRoom)
	b.buf = EndMessage(AppendSpan(buf, s), at, spanRoom)
}

// Encoded writes a span that [AppendSpan] encoded, where Span would.
func (b *Builder) Encoded(span []byte) {
	if b.scope == 0 {
		b.Scope("", "", nil)
	}
	b.buf = appendField(b.buf, 2, span)
}

// Len is about how long the request is so far.
func (b *Builder) Len() int { return len(b.buf) }

// Bytes returns the request, which is valid until Reset.
func (b *Builder) Bytes() []byte {
	b.closeResource()
	return b.buf
}

func (b *Builder) closeResource() {
	b.closeScope()
	if b.resource > 0 {
		b.buf, b.resource = EndMessage(b.buf, b.resource, lengthRoom), 0
	}
}

func (b *Builder) closeScope() {
	if b.scope > 0 {
		b.buf, b.scope = EndMessage(b.buf, b.scope, lengthRoom), 0
	}
}

// BeginMessage appends the tag of a message, for field numbers below 16, and room for its length, in bytes. at is where its content begins.
func BeginMessage(dst []byte, num, room int) (out []byte, at int) {
	dst = append(dst, byte(num<<3|wireLen))
	for range room {
		dst = append(dst, 0)
	}
	return dst, len(dst)
}

// EndMessage writes the length of the message whose content began at at, in as few bytes as it takes: the content is moved where that is not
// room.
func EndMessage(dst []byte, at, room int) []byte {
	n := len(dst) - at
	need := uvarintSize(uint64(n))
	switch {
	case need < room:
		copy(dst[at-room+need:], dst[at:])
		dst = dst[:len(dst)-room+need]
	case need > room:
		for range need - room {
			dst = append(dst, 0)
		}
		copy(dst[at-room+need:], dst[at:at+n])
	}
	binary.PutUvarint(dst[at-room:], uint64(n))
	return dst
}
