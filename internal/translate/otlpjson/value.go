package otlpjson

import (
	"strconv"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// appendAttributes appends the member `attributes`, unless it is empty.
func appendAttributes(dst []byte, kvs []otlpdata.KeyValue) []byte {
	before := len(dst)
	dst = append(member(dst, "attributes"), '[')
	empty := len(dst)
	for i := range kvs {
		if kvs[i].Key != otlpdata.FlagsAttribute {
			dst = appendEntry(separate(dst), &kvs[i])
		}
	}
	if len(dst) == empty {
		return dst[:before]
	}
	return append(dst, ']')
}

// AppendAttribute appends one KeyValue.
func AppendAttribute(dst []byte, key string, v otlpdata.Value) []byte {
	return appendEntry(dst, &otlpdata.KeyValue{Key: key, Value: v})
}

func appendEntry(dst []byte, kv *otlpdata.KeyValue) []byte {
	dst = otlpdata.AppendJSONString(append(dst, `{"key":`...), kv.Key)
	return append(appendValue(append(dst, `,"value":`...), kv.Value), '}')
}

// appendValue appends an AnyValue. The nesting of values was limited when they were received.
func appendValue(dst []byte, v otlpdata.Value) []byte {
	switch v.Kind() {
	case otlpdata.ValueString:
		dst = v.AppendJSON(append(dst, `{"stringValue":`...))
	case otlpdata.ValueBool:
		dst = v.AppendJSON(append(dst, `{"boolValue":`...))
	case otlpdata.ValueInt:
		dst = strconv.AppendInt(append(dst, `{"intValue":"`...), v.Int(), 10)
		dst = append(dst, '"')
	case otlpdata.ValueDouble:
		dst = appendDouble(append(dst, `{"doubleValue":`...), v)
	case otlpdata.ValueBytes:
		dst = v.AppendJSON(append(dst, `{"bytesValue":`...))
	case otlpdata.ValueArray:
		dst = append(dst, `{"arrayValue":{"values":[`...)
		for e := range v.Elements() {
			dst = appendValue(separate(dst), e)
		}
		dst = append(dst, "]}"...)
	case otlpdata.ValueMap:
		dst = append(dst, `{"kvlistValue":{"values":[`...)
		for kv := range v.Entries() {
			dst = appendEntry(separate(dst), &kv)
		}
		dst = append(dst, "]}"...)
	default:
		dst = append(dst, '{')
	}
	return append(dst, '}')
}

// appendDouble appends a number, or a string for infinities and NaN.
func appendDouble(dst []byte, v otlpdata.Value) []byte {
	switch v.AsString() {
	case "+Inf":
		return append(dst, `"Infinity"`...)
	case "-Inf":
		return append(dst, `"-Infinity"`...)
	}
	return v.AppendJSON(dst)
}
