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

// appendTag appends an attribute as a KeyValue. proto3 strings must be UTF-8: other string values
// become bytes, and the n-th key of a list that is not UTF-8 becomes `invalid-tag-key-n` with the
// original key and value as its value.
func appendTag(dst []byte, num int, kv *otlpdata.KeyValue, invalidKeys *int) []byte {
	if !utf8.ValidString(kv.Key) {
		*invalidKeys++
		both := kv.Value.AppendText([]byte(kv.Key + ":"))
		return appendScalarTag(dst, num, "invalid-tag-key-"+strconv.Itoa(*invalidKeys), otlpdata.EncodedValue(otlpdata.ValueBytes, string(both)))
	}
	switch kv.Value.Kind() {
	case otlpdata.ValueArray, otlpdata.ValueMap:
		return appendNested(dst, num, kv)
	case otlpdata.ValueString:
		if !utf8.ValidString(kv.Value.Encoded()) {
			return appendScalarTag(dst, num, kv.Key, otlpdata.EncodedValue(otlpdata.ValueBytes, kv.Value.Encoded()))
		}
	}
	return appendScalarTag(dst, num, kv.Key, kv.Value)
}

// appendStringTag appends a tag with a string, or with bytes if value is not UTF-8. It appends
// nothing if value is empty.
func appendStringTag(dst []byte, num int, key, value string) []byte {
	if value == "" {
		return dst
	}
	v := otlpdata.StringValue(value)
	if !utf8.ValidString(value) {
		v = otlpdata.EncodedValue(otlpdata.ValueBytes, value)
	}
	return appendScalarTag(dst, num, key, v)
}

// appendNested appends a tag with the JSON of an array or a map.
func appendNested(dst []byte, num int, kv *otlpdata.KeyValue) []byte {
	const reserved = 2
	dst, at := protoenc.BeginMessage(dst, num, reserved)
	dst = protoenc.AppendString(dst, tagKey, kv.Key)
	dst, value := protoenc.BeginMessage(dst, tagString, reserved)
	dst = protoenc.EndMessage(kv.Value.AppendJSON(dst), value, reserved)
	return protoenc.EndMessage(dst, at, reserved)
}

// appendScalarTag appends a tag with a key that is UTF-8 and a scalar value. Default values are
// left out, as proto3 encoders do.
func appendScalarTag(dst []byte, num int, key string, v otlpdata.Value) []byte {
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

// appendTyped appends the beginning of a tag whose value is not a string. size is the size of its
// key and value.
func appendTyped(dst []byte, num, size int, key string, typ byte) []byte {
	return append(protoenc.AppendString(protoenc.AppendHeader(dst, num, size+2), tagKey, key), tagType<<3|protoenc.Varint, typ)
}

// valid returns s with U+FFFD in place of invalid UTF-8.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
