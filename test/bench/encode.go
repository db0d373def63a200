package bench

import (
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// The encoders of SDKs write fields in ascending order of their numbers. pdata, and therefore every
// collector that uses it, does not. The functions below encode requests like an SDK, with the field
// numbers of opentelemetry-proto.

func appendMessage(dst []byte, num protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, num, protowire.BytesType), content)
}

// appendText omits an empty string, as proto3 does. The functions for numbers omit a zero.
func appendText(dst []byte, num protowire.Number, s string) []byte {
	if s == "" {
		return dst
	}
	return protowire.AppendString(protowire.AppendTag(dst, num, protowire.BytesType), s)
}

func appendVarint(dst []byte, num protowire.Number, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return protowire.AppendVarint(protowire.AppendTag(dst, num, protowire.VarintType), v)
}

func appendFixed32(dst []byte, num protowire.Number, v uint32) []byte {
	if v == 0 {
		return dst
	}
	return protowire.AppendFixed32(protowire.AppendTag(dst, num, protowire.Fixed32Type), v)
}

func appendFixed64(dst []byte, num protowire.Number, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return protowire.AppendFixed64(protowire.AppendTag(dst, num, protowire.Fixed64Type), v)
}

func encodeSpan(s *Span) []byte {
	dst := make([]byte, 0, 512)
	dst = appendMessage(dst, 1, s.TraceID[:])
	dst = appendMessage(dst, 2, s.SpanID[:])
	if !s.ParentID.IsZero() {
		dst = appendMessage(dst, 4, s.ParentID[:])
	}
	dst = appendText(dst, 5, s.Name)
	dst = appendVarint(dst, 6, uint64(s.Kind))
	dst = appendFixed64(dst, 7, s.Start)
	dst = appendFixed64(dst, 8, s.End)
	dst = appendAttributes(dst, 9, s.Attributes)
	for _, e := range s.Events {
		event := appendText(appendFixed64(nil, 1, e.Time), 2, e.Name)
		dst = appendMessage(dst, 11, appendAttributes(event, 3, e.Attributes))
	}
	for _, l := range s.Links {
		link := appendMessage(appendMessage(nil, 1, l.TraceID[:]), 2, l.SpanID[:])
		dst = appendMessage(dst, 13, appendFixed32(appendAttributes(link, 4, l.Attributes), 6, l.Flags))
	}
	if s.StatusCode != otlpdata.StatusUnset {
		dst = appendMessage(dst, 15, appendVarint(appendText(nil, 2, s.StatusMessage), 3, uint64(s.StatusCode)))
	}
	return appendFixed32(dst, 16, s.Flags)
}

func appendAttributes(dst []byte, num protowire.Number, kvs []otlpdata.KeyValue) []byte {
	for _, kv := range kvs {
		dst = appendMessage(dst, num, appendMessage(appendText(nil, 1, kv.Key), 2, encodeValue(kv)))
	}
	return dst
}

// encodeValue also writes zeros, because the field number of a oneof determines the type of the
// value.
func encodeValue(kv otlpdata.KeyValue) []byte {
	switch v := kv.Value; v.Kind() {
	case otlpdata.ValueString:
		return protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), v.Str())
	case otlpdata.ValueBool:
		return protowire.AppendVarint(protowire.AppendTag(nil, 2, protowire.VarintType), protowire.EncodeBool(v.Bool()))
	case otlpdata.ValueInt:
		return protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), uint64(v.Int()))
	case otlpdata.ValueDouble:
		return protowire.AppendFixed64(protowire.AppendTag(nil, 4, protowire.Fixed64Type), math.Float64bits(v.Double()))
	default:
		panic(fmt.Sprintf("BUG: attribute %q has kind %d, which the data set does not use", kv.Key, v.Kind()))
	}
}
