package zipkin

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Types of binary annotations (AnnotationType of zipkincore).
const (
	v1Bool int32 = iota
	v1Bytes
	v1I16
	v1I32
	v1I64
	v1Double
	v1String
)

// httpValue converts the value of a binary annotation by the rules for HTTP.
func (t *v1Translator) httpValue(typ int32, value string) otlpdata.Value {
	switch typ {
	case v1Bytes:
		from := len(t.text)
		t.text = base64.StdEncoding.AppendEncode(t.text, unsafeBytes(value))
		return otlpdata.StringValue(unsafeString(t.text[from:]))
	case v1Bool, v1I16, v1I32, v1I64, v1Double, v1String:
		if v, ok := typedValue(typ, value); ok {
			return v
		}
		return otlpdata.StringValue("<not enough bytes representing the number>")
	}
	from := len(t.text)
	t.text = strconv.AppendInt(append(t.text, "<unknown zipkin v1 binary annotation type ("...), int64(typ), 10)
	t.text = append(t.text, ")>"...)
	return otlpdata.StringValue(unsafeString(t.text[from:]))
}

// agentValue converts the value of a binary annotation by the rules for UDP.
func (t *v1Translator) agentValue(typ int32, value string) otlpdata.Value {
	if typ == v1Bytes {
		return otlpdata.EncodedValue(otlpdata.ValueBytes, value)
	}
	v, ok := typedValue(typ, value)
	if ok {
		return v
	}
	from := len(t.text)
	t.text = base64.StdEncoding.AppendEncode(append(t.text, "Cannot parse Zipkin value "...), unsafeBytes(value))
	switch {
	case typ < v1Bool || typ > v1String:
		t.text = strconv.AppendInt(append(t.text, ": unknown zipkin annotation type: "...), int64(typ), 10)
	case value == "":
		t.text = append(t.text, ": EOF"...)
	default:
		t.text = append(t.text, ": unexpected EOF"...)
	}
	return otlpdata.StringValue(unsafeString(t.text[from:]))
}

// typedValue converts all values except bytes. Numbers are read from their first bytes, big-endian
// and signed (other receivers lose the sign over HTTP). ok is false for a truncated number and for
// an unknown type.
func typedValue(typ int32, value string) (v otlpdata.Value, ok bool) {
	b := unsafeBytes(value)
	switch {
	case typ == v1Bool:
		return otlpdata.BoolValue(value == "\x01"), true
	case typ == v1String:
		return otlpdata.StringValue(value), true
	case typ == v1I16 && len(b) >= 2:
		return otlpdata.IntValue(int64(int16(binary.BigEndian.Uint16(b)))), true
	case typ == v1I32 && len(b) >= 4:
		return otlpdata.IntValue(int64(int32(binary.BigEndian.Uint32(b)))), true
	case typ == v1I64 && len(b) >= 8:
		return otlpdata.IntValue(int64(binary.BigEndian.Uint64(b))), true
	case typ == v1Double && len(b) >= 8:
		return otlpdata.DoubleValue(math.Float64frombits(binary.BigEndian.Uint64(b))), true
	}
	return otlpdata.Value{}, false
}
