package otlpdata

import (
	"encoding/binary"
	"math/bits"
)

// AppendSpan appends the encoded Span message that s describes, fields in the order of their numbers and defaults left out. s.Raw is not
// looked at. Spans with the same content get the same bytes.
func AppendSpan(dst []byte, s *Span) []byte {
	if !s.TraceID.IsZero() {
		dst = appendField(dst, 1, s.TraceID[:])
	}
	if !s.SpanID.IsZero() {
		dst = appendField(dst, 2, s.SpanID[:])
	}
	dst = appendText(dst, 3, s.TraceState)
	if !s.ParentID.IsZero() {
		dst = appendField(dst, 4, s.ParentID[:])
	}
	dst = appendText(dst, 5, s.Name)
	dst = appendVarint(dst, 6, uint64(int64(s.Kind)))
	dst = appendFixed64(dst, 7, s.Start)
	dst = appendFixed64(dst, 8, s.End)
	dst = AppendAttributes(dst, s.Attributes)
	dst = appendVarint(dst, 10, uint64(s.DroppedAttributes))
	dst = AppendEvents(dst, s.Events)
	dst = appendVarint(dst, 12, uint64(s.DroppedEvents))
	dst = AppendLinks(dst, s.Links)
	dst = appendVarint(dst, 14, uint64(s.DroppedLinks))
	if n := textSize(s.StatusMessage) + varintSize(uint64(int64(s.StatusCode))); n > 0 {
		dst = appendHead(dst, 15, n)
		dst = appendText(dst, 2, s.StatusMessage)
		dst = appendVarint(dst, 3, uint64(int64(s.StatusCode)))
	}
	if s.Flags != 0 {
		dst = append(dst, 16<<3&0x7f|wireI32|0x80, 16>>4) // field 16 has a tag of two bytes
		dst = binary.LittleEndian.AppendUint32(dst, s.Flags)
	}
	return dst
}

// AppendAttributes appends attributes as the fields of a Span message. [SpanReader] reads them back from such a message alone.
func AppendAttributes(dst []byte, kvs []KeyValue) []byte { return appendAttributes(dst, 9, kvs) }

// AppendEvents appends events as the fields of a Span message.
func AppendEvents(dst []byte, events []Event) []byte {
	for i := range events {
		e := &events[i]
		n := textSize(e.Name) + attributesSize(e.Attributes) + varintSize(uint64(e.DroppedAttributes))
		if e.Time != 0 {
			n += 9
		}
		dst = appendHead(dst, 11, n)
		dst = appendFixed64(dst, 1, e.Time)
		dst = appendText(dst, 2, e.Name)
		dst = appendAttributes(dst, 3, e.Attributes)
		dst = appendVarint(dst, 4, uint64(e.DroppedAttributes))
	}
	return dst
}

// AppendLinks appends links as the fields of a Span message.
func AppendLinks(dst []byte, links []Link) []byte {
	const room = 1 // right for links without attributes
	for i := range links {
		k := &links[i]
		var at int
		dst, at = BeginMessage(dst, 13, room)
		if !k.TraceID.IsZero() {
			dst = appendField(dst, 1, k.TraceID[:])
		}
		if !k.SpanID.IsZero() {
			dst = appendField(dst, 2, k.SpanID[:])
		}
		dst = appendText(dst, 3, k.TraceState)
		dst = appendAttributes(dst, 4, k.Attributes)
		dst = appendVarint(dst, 5, uint64(k.DroppedAttributes))
		if k.Flags != 0 {
			dst = binary.LittleEndian.AppendUint32(append(dst, 6<<3|wireI32), k.Flags)
		}
		dst = EndMessage(dst, at, room)
	}
	return dst
}

func appendAttributes(dst []byte, num int, kvs []KeyValue) []byte {
	for i := range kvs {
		kv := &kvs[i]
		value := kv.Value.encodedSize()
		dst = appendHead(dst, num, textSize(kv.Key)+fieldSize(value))
		dst = appendText(dst, 1, kv.Key)
		dst = appendHead(dst, 2, value)
		dst = kv.Value.appendEncoded(dst)
	}
	return dst
}

func attributesSize(kvs []KeyValue) int {
	n := 0
	for i := range kvs {
		n += fieldSize(textSize(kvs[i].Key) + fieldSize(kvs[i].Value.encodedSize()))
	}
	return n
}

// appendEncoded appends the AnyValue message. Members of a oneof are written also when they hold the default.
func (v Value) appendEncoded(dst []byte) []byte {
	switch v.kind {
	case ValueString:
		return append(appendHead(dst, 1, len(v.data)), v.data...)
	case ValueBool:
		return append(dst, 2<<3|wireVarint, byte(v.num))
	case ValueInt:
		return binary.AppendUvarint(append(dst, 3<<3|wireVarint), v.num)
	case ValueDouble:
		return binary.LittleEndian.AppendUint64(append(dst, 4<<3|wireI64), v.num)
	case ValueArray:
		return append(appendHead(dst, 5, len(v.data)), v.data...)
	case ValueMap:
		return append(appendHead(dst, 6, len(v.data)), v.data...)
	case ValueBytes:
		return append(appendHead(dst, 7, len(v.data)), v.data...)
	}
	return dst
}

func (v Value) encodedSize() int {
	switch v.kind {
	case ValueString, ValueArray, ValueMap, ValueBytes:
		return fieldSize(len(v.data))
	case ValueBool:
		return 2
	case ValueInt:
		return 1 + uvarintSize(v.num)
	case ValueDouble:
		return 9
	}
	return 0
}

func uvarintSize(v uint64) int { return (bits.Len64(v|1) + 6) / 7 }

func varintSize(v uint64) int {
	if v == 0 {
		return 0
	}
	return 1 + uvarintSize(v)
}

func appendVarint(dst []byte, num int, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return binary.AppendUvarint(append(dst, byte(num<<3|wireVarint)), v)
}

func appendFixed64(dst []byte, num int, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return binary.LittleEndian.AppendUint64(append(dst, byte(num<<3|wireI64)), v)
}
