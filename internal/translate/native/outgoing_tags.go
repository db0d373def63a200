package native

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// appendTag appends an attribute as a KeyValue. What is not UTF-8 cannot be a string of proto3: a
// value travels as bytes, and a key `invalid-tag-key-n` with both as its value takes the place of
// the n-th such key of a list.
func appendTag(dst []byte, num int, kv *otlpdata.KeyValue, invalidKeys *int) []byte {
	if !utf8.ValidString(kv.Key) {
		*invalidKeys++
		both := kv.Value.AppendText([]byte(kv.Key + ":"))
		return appendUsualTag(dst, num, "invalid-tag-key-"+strconv.Itoa(*invalidKeys), otlpdata.EncodedValue(otlpdata.ValueBytes, string(both)))
	}
	switch kv.Value.Kind() {
	case otlpdata.ValueArray, otlpdata.ValueMap:
		return appendNested(dst, num, kv)
	case otlpdata.ValueString:
		if !utf8.ValidString(kv.Value.Encoded()) {
			return appendUsualTag(dst, num, kv.Key, otlpdata.EncodedValue(otlpdata.ValueBytes, kv.Value.Encoded()))
		}
	}
	return appendUsualTag(dst, num, kv.Key, kv.Value)
}

// appendText appends a tag with a string, or with bytes where that is not UTF-8, and nothing for an
// empty one.
func appendText(dst []byte, num int, key, value string) []byte {
	if value == "" {
		return dst
	}
	v := otlpdata.StringValue(value)
	if !utf8.ValidString(value) {
		v = otlpdata.EncodedValue(otlpdata.ValueBytes, value)
	}
	return appendUsualTag(dst, num, key, v)
}

// appendNested appends a tag with the JSON of an array or a map.
func appendNested(dst []byte, num int, kv *otlpdata.KeyValue) []byte {
	const room = 2
	dst, at := protoenc.BeginMessage(dst, num, room)
	dst = protoenc.AppendString(dst, tagKey, kv.Key)
	dst, value := protoenc.BeginMessage(dst, tagString, room)
	dst = protoenc.EndMessage(kv.Value.AppendJSON(dst), value, room)
	return protoenc.EndMessage(dst, at, room)
}

// appendUsualTag appends a tag with a key that is UTF-8 and a value that is a scalar. Defaults are
// left out, as encoders of proto3 do.
func appendUsualTag(dst []byte, num int, key string, v otlpdata.Value) []byte {
	size := protoenc.SizeString(key)
	switch v.Kind() {
	case otlpdata.ValueString:
		data := v.Encoded()
		dst = protoenc.AppendString(protoenc.AppendHeader(dst, num, size+protoenc.SizeString(data)), tagKey, key)
		return protoenc.AppendString(dst, tagString, data)
	case otlpdata.ValueInt:
		n := uint64(v.Int())
		dst = appendTyped(dst, num, size+protoenc.SizeUint(n), key, typeInt64)
		if n != 0 {
			dst = binary.AppendUvarint(append(dst, tagInt64<<3|protoenc.Varint), n)
		}
		return dst
	case otlpdata.ValueBool:
		if !v.Bool() {
			return appendTyped(dst, num, size, key, typeBool)
		}
		return append(appendTyped(dst, num, size+2, key, typeBool), tagBool<<3|protoenc.Varint, 1)
	case otlpdata.ValueDouble:
		bits := math.Float64bits(v.Double())
		if bits == 0 {
			return appendTyped(dst, num, size, key, typeFloat64)
		}
		dst = append(appendTyped(dst, num, size+1+8, key, typeFloat64), tagFloat64<<3|protoenc.Fixed64)
		return binary.LittleEndian.AppendUint64(dst, bits)
	case otlpdata.ValueBytes:
		data := v.Encoded()
		return protoenc.AppendString(appendTyped(dst, num, size+protoenc.SizeString(data), key, typeBinary), tagBinary, data)
	}
	return protoenc.AppendString(protoenc.AppendHeader(dst, num, size), tagKey, key)
}

// appendTyped appends the beginning of a tag that is not a string. size is that of its key and
// value.
func appendTyped(dst []byte, num, size int, key string, typ byte) []byte {
	return append(protoenc.AppendString(protoenc.AppendHeader(dst, num, size+2), tagKey, key), tagType<<3|protoenc.Varint, typ)
}

// valid returns s with U+FFFD in place of what is not UTF-8.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
