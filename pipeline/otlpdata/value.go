package otlpdata

import (
	"encoding/base64"
	"encoding/json"
	"iter"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// ValueKind is the member of the AnyValue oneof that a [Value] holds.
type ValueKind uint8

// The kinds of an attribute value.
const (
	ValueEmpty ValueKind = iota
	ValueString
	ValueBool
	ValueInt
	ValueDouble
	ValueBytes
	ValueArray
	ValueMap
)

// Value is an attribute value. Scalars are decoded. An array or a map stays encoded and is decoded
// while the caller ranges over it. Strings and bytes alias the chunk.
type Value struct {
	kind ValueKind
	num  uint64
	data string
}

// StringValue returns a string attribute value.
func StringValue(s string) Value { return Value{kind: ValueString, data: s} }

// BoolValue returns a boolean attribute value.
func BoolValue(b bool) Value {
	if b {
		return Value{kind: ValueBool, num: 1}
	}
	return Value{kind: ValueBool}
}

// IntValue returns an integer attribute value.
func IntValue(i int64) Value { return Value{kind: ValueInt, num: uint64(i)} }

// DoubleValue returns a floating-point attribute value.
func DoubleValue(f float64) Value { return Value{kind: ValueDouble, num: math.Float64bits(f)} }

// EncodedValue returns a value of the given kind for the result of [Value.Encoded]. Stores use it
// to restore values.
func EncodedValue(kind ValueKind, data string) Value {
	switch kind {
	case ValueString, ValueBytes, ValueArray, ValueMap:
		return Value{kind: kind, data: data}
	}
	return Value{}
}

// Encoded returns the content of a string or of bytes, or the encoded ArrayValue or KeyValueList of
// an array or a map, and "" for other kinds. It aliases the chunk.
func (v Value) Encoded() string { return v.data }

// Kind returns the kind of the value.
func (v Value) Kind() ValueKind { return v.kind }

// Str returns the value of a ValueString, and "" for other kinds.
func (v Value) Str() string {
	if v.kind != ValueString {
		return ""
	}
	return v.data
}

// Bool returns the value of a ValueBool, and false for other kinds.
func (v Value) Bool() bool { return v.kind == ValueBool && v.num != 0 }

// Int returns the value of a ValueInt, and 0 for other kinds.
func (v Value) Int() int64 {
	if v.kind != ValueInt {
		return 0
	}
	return int64(v.num)
}

// Double returns the value of a ValueDouble, and 0 for other kinds.
func (v Value) Double() float64 {
	if v.kind != ValueDouble {
		return 0
	}
	return math.Float64frombits(v.num)
}

// Bytes returns the value of a ValueBytes, and nil for other kinds. The caller must not modify it.
func (v Value) Bytes() []byte {
	if v.kind != ValueBytes {
		return nil
	}
	return unsafeBytes(v.data)
}

// Elements ranges over the values of a ValueArray. It yields nothing for other kinds.
func (v Value) Elements() iter.Seq[Value] {
	return func(yield func(Value) bool) {
		if v.kind != ValueArray {
			return
		}
		b := unsafeBytes(v.data)
		for item, pos, ok := nextItem(b, 0); ok; item, pos, ok = nextItem(b, pos) {
			var e Value
			if e.decode(item, validated) != nil || !yield(e) {
				return
			}
		}
	}
}

// Entries ranges over the entries of a ValueMap. It yields nothing for other kinds.
func (v Value) Entries() iter.Seq[KeyValue] {
	return func(yield func(KeyValue) bool) {
		if v.kind != ValueMap {
			return
		}
		b := unsafeBytes(v.data)
		for item, pos, ok := nextItem(b, 0); ok; item, pos, ok = nextItem(b, pos) {
			var kv KeyValue
			if kv.decode(item, validated) != nil || !yield(kv) {
				return
			}
		}
	}
}

// nextItem returns the next item, from pos on, of an encoded ArrayValue or KeyValueList, and the
// position after it. Both messages hold their items in field 1. ok is false at the end and at
// malformed data.
func nextItem(b []byte, pos int) (item []byte, next int, ok bool) {
	for f := (protoenc.Reader{}); pos < len(b); {
		var err error
		if pos, err = f.Next(b, pos); err != nil {
			return nil, 0, false
		}
		if f.Tag == 1<<3|protoenc.Length {
			return f.Data, pos, true
		}
	}
	return nil, 0, false
}

// AsString returns the text form that searches compare and the UI shows: a string unchanged,
// booleans as `true` or `false`, integers in decimal, floats in the shortest form that parses to
// the same number, bytes in standard base64, arrays and maps as JSON, and an empty value as "".
func (v Value) AsString() string {
	switch v.kind {
	case ValueString:
		return v.data
	case ValueArray, ValueMap:
		return string(v.AppendJSON(nil))
	}
	return string(v.AppendText(nil))
}

// AppendText appends AsString to dst.
func (v Value) AppendText(dst []byte) []byte {
	switch v.kind {
	case ValueString:
		return append(dst, v.data...)
	case ValueBool:
		return strconv.AppendBool(dst, v.num != 0)
	case ValueInt:
		return strconv.AppendInt(dst, int64(v.num), 10)
	case ValueDouble:
		return appendFloat(dst, math.Float64frombits(v.num))
	case ValueBytes:
		return base64.StdEncoding.AppendEncode(dst, unsafeBytes(v.data))
	case ValueArray, ValueMap:
		return v.AppendJSON(dst)
	}
	return dst
}

// AppendJSON appends the value as JSON: bytes as a base64 string, NaN and infinities as strings,
// and an empty value as null. Invalid UTF-8 is replaced by U+FFFD. Repeated keys of a map are all
// kept.
func (v Value) AppendJSON(dst []byte) []byte {
	switch v.kind {
	case ValueString:
		return AppendJSONString(dst, v.data)
	case ValueBool, ValueInt:
		return v.AppendText(dst)
	case ValueDouble:
		f := math.Float64frombits(v.num)
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return append(appendFloat(append(dst, '"'), f), '"')
		}
		return appendFloat(dst, f)
	case ValueBytes:
		return append(base64.StdEncoding.AppendEncode(append(dst, '"'), unsafeBytes(v.data)), '"')
	case ValueArray:
		dst = append(dst, '[')
		n := 0
		for e := range v.Elements() {
			if n++; n > 1 {
				dst = append(dst, ',')
			}
			dst = e.AppendJSON(dst)
		}
		return append(dst, ']')
	case ValueMap:
		dst = append(dst, '{')
		n := 0
		for kv := range v.Entries() {
			if n++; n > 1 {
				dst = append(dst, ',')
			}
			dst = append(AppendJSONString(dst, kv.Key), ':')
			dst = kv.Value.AppendJSON(dst)
		}
		return append(dst, '}')
	}
	return append(dst, "null"...)
}

func appendFloat(dst []byte, f float64) []byte {
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, f, format, -1, 64)
}

// AppendJSONString appends s as a JSON string. Invalid UTF-8 is replaced by U+FFFD, so that the
// result is always valid JSON. HTML characters are not escaped.
func AppendJSONString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if (r != utf8.RuneError || n > 1) && r != '\u2028' && r != '\u2029' {
				i += n
				continue
			}
			dst = append(dst, s[from:i]...)
			switch r {
			case '\u2028':
				dst = append(dst, `\u2028`...)
			case '\u2029':
				dst = append(dst, `\u2029`...)
			default:
				dst = append(dst, "\ufffd"...)
			}
			i += n
			from = i
			continue
		}
		dst = append(dst, s[from:i]...)
		dst = appendEscape(dst, c)
		i++
		from = i
	}
	return append(append(dst, s[from:]...), '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	const hexDigits = "0123456789abcdef"
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

var _ json.Marshaler = Value{}

// MarshalJSON returns the JSON of AppendJSON.
func (v Value) MarshalJSON() ([]byte, error) { return v.AppendJSON(nil), nil }
