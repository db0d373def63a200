package otlpdata

import (
	"encoding/binary"

	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// AppendSpan appends s as an encoded Span message: fields in the order of their numbers, default
// values left out. s.Raw is ignored. Equal spans get equal bytes.
func AppendSpan(dst []byte, s *Span) []byte {
	if !s.TraceID.IsZero() {
		dst = protoenc.AppendBytes(dst, 1, s.TraceID[:])
	}
	if !s.SpanID.IsZero() {
		dst = protoenc.AppendBytes(dst, 2, s.SpanID[:])
	}
	dst = protoenc.AppendString(dst, 3, s.TraceState)
	if !s.ParentID.IsZero() {
		dst = protoenc.AppendBytes(dst, 4, s.ParentID[:])
	}
	dst = protoenc.AppendString(dst, 5, s.Name)
	dst = protoenc.AppendUint(dst, 6, uint64(int64(s.Kind)))
	dst = protoenc.AppendFixed64(dst, 7, s.Start)
	dst = protoenc.AppendFixed64(dst, 8, s.End)
	dst = AppendAttributes(dst, s.Attributes)
	dst = protoenc.AppendUint(dst, 10, uint64(s.DroppedAttributes))
	dst = AppendEvents(dst, s.Events)
	dst = protoenc.AppendUint(dst, 12, uint64(s.DroppedEvents))
	dst = AppendLinks(dst, s.Links)
	dst = protoenc.AppendUint(dst, 14, uint64(s.DroppedLinks))
	if n := protoenc.SizeString(s.StatusMessage) + protoenc.SizeUint(uint64(int64(s.StatusCode))); n > 0 {
		dst = protoenc.AppendHeader(dst, 15, n)
		dst = protoenc.AppendString(dst, 2, s.StatusMessage)
		dst = protoenc.AppendUint(dst, 3, uint64(int64(s.StatusCode)))
	}
	if s.Flags != 0 {
		dst = append(dst, 16<<3&0x7f|protoenc.Fixed32|0x80, 16>>4) // the tag of field 16 takes two bytes
		dst = binary.LittleEndian.AppendUint32(dst, s.Flags)
	}
	return dst
}

// AppendAttributes appends attributes as fields of a Span message. [SpanReader] reads them back
// from a message that holds nothing else.
func AppendAttributes(dst []byte, kvs []KeyValue) []byte { return appendAttributes(dst, 9, kvs) }

// AppendEvents appends events as fields of a Span message.
func AppendEvents(dst []byte, events []Event) []byte {
	for i := range events {
		e := &events[i]
		n := protoenc.SizeString(e.Name) + attributesSize(e.Attributes) + protoenc.SizeUint(uint64(e.DroppedAttributes))
		if e.Time != 0 {
			n += 9
		}
		dst = protoenc.AppendHeader(dst, 11, n)
		dst = protoenc.AppendFixed64(dst, 1, e.Time)
		dst = protoenc.AppendString(dst, 2, e.Name)
		dst = appendAttributes(dst, 3, e.Attributes)
		dst = protoenc.AppendUint(dst, 4, uint64(e.DroppedAttributes))
	}
	return dst
}

// AppendLinks appends links as fields of a Span message.
func AppendLinks(dst []byte, links []Link) []byte {
	const reserved = 1 // exact for links without attributes
	for i := range links {
		k := &links[i]
		var at int
		dst, at = protoenc.BeginMessage(dst, 13, reserved)
		if !k.TraceID.IsZero() {
			dst = protoenc.AppendBytes(dst, 1, k.TraceID[:])
		}
		if !k.SpanID.IsZero() {
			dst = protoenc.AppendBytes(dst, 2, k.SpanID[:])
		}
		dst = protoenc.AppendString(dst, 3, k.TraceState)
		dst = appendAttributes(dst, 4, k.Attributes)
		dst = protoenc.AppendUint(dst, 5, uint64(k.DroppedAttributes))
		if k.Flags != 0 {
			dst = binary.LittleEndian.AppendUint32(append(dst, 6<<3|protoenc.Fixed32), k.Flags)
		}
		dst = protoenc.EndMessage(dst, at, reserved)
	}
	return dst
}

func appendAttributes(dst []byte, num int, kvs []KeyValue) []byte {
	for i := range kvs {
		kv := &kvs[i]
		value := kv.Value.encodedSize()
		dst = protoenc.AppendHeader(dst, num, protoenc.SizeString(kv.Key)+protoenc.SizeBytes(value))
		dst = protoenc.AppendString(dst, 1, kv.Key)
		dst = protoenc.AppendHeader(dst, 2, value)
		dst = kv.Value.appendEncoded(dst)
	}
	return dst
}

func attributesSize(kvs []KeyValue) int {
	n := 0
	for i := range kvs {
		n += protoenc.SizeBytes(protoenc.SizeString(kvs[i].Key) + protoenc.SizeBytes(kvs[i].Value.encodedSize()))
	}
	return n
}

// appendEncoded appends the AnyValue message. Members of a oneof are written even if they hold the
// default value.
func (v Value) appendEncoded(dst []byte) []byte {
	switch v.kind {
	case ValueString:
		return append(protoenc.AppendHeader(dst, 1, len(v.data)), v.data...)
	case ValueBool:
		return append(dst, 2<<3|protoenc.Varint, byte(v.num))
	case ValueInt:
		return binary.AppendUvarint(append(dst, 3<<3|protoenc.Varint), v.num)
	case ValueDouble:
		return binary.LittleEndian.AppendUint64(append(dst, 4<<3|protoenc.Fixed64), v.num)
	case ValueArray:
		return append(protoenc.AppendHeader(dst, 5, len(v.data)), v.data...)
	case ValueMap:
		return append(protoenc.AppendHeader(dst, 6, len(v.data)), v.data...)
	case ValueBytes:
		return append(protoenc.AppendHeader(dst, 7, len(v.data)), v.data...)
	}
	return dst
}

func (v Value) encodedSize() int {
	switch v.kind {
	case ValueString, ValueArray, ValueMap, ValueBytes:
		return protoenc.SizeBytes(len(v.data))
	case ValueBool:
		return 2
	case ValueInt:
		return 1 + protoenc.SizeVarint(v.num)
	case ValueDouble:
		return 9
	}
	return 0
}
