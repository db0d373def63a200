package native

import (
	"bytes"
	"encoding/base64"
	"math"
	"strconv"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// AppendJSON appends an encoded Span, as written by [Spans], in the JSON form of protobuf: names in
// camel case, bytes in base64, 64-bit integers as strings, enumerations as names, default values
// left out. Existing collectors write spans to Kafka in this form.
func AppendJSON(dst, span []byte) []byte {
	dst = append(dst, '{')
	dst = appendJSONBytes(dst, "traceId", fieldOf(span, spanTraceID))
	dst = appendJSONSpanID(dst, fieldOf(span, spanID))
	dst = appendJSONText(dst, "operationName", fieldOf(span, spanOperationName))
	dst = appendJSONList(dst, "references", span, spanReferences, appendJSONReference)
	if flags := numberOf(span, spanFlags); flags != 0 {
		dst = strconv.AppendUint(jsonMember(dst, "flags"), flags, 10)
	}
	dst = appendJSONTime(dst, "startTime", fieldOf(span, spanStartTime))
	dst = appendJSONDuration(dst, "duration", fieldOf(span, spanDuration))
	dst = appendJSONList(dst, "tags", span, spanTags, appendJSONTag)
	dst = appendJSONList(dst, "logs", span, spanLogs, appendJSONLog)
	dst = append(jsonMember(dst, "process"), '{')
	process := fieldOf(span, spanProcess)
	dst = appendJSONText(dst, "serviceName", fieldOf(process, processServiceName))
	dst = append(appendJSONList(dst, "tags", process, processTags, appendJSONTag), '}')
	dst = appendJSONList(dst, "warnings", span, spanWarnings, func(dst, warning []byte) []byte {
		return otlpdata.AppendJSONString(dst, unsafeString(warning))
	})
	return append(dst, '}')
}

// fieldOf returns the content of the last length-delimited field with a number.
func fieldOf(message []byte, num int) (content []byte) {
	for f := range protoenc.Fields(message) {
		if f.Num == num && f.Bytes {
			content = f.Content
		}
	}
	return content
}

// numberOf returns the value of the last varint or fixed field with a number.
func numberOf(message []byte, num int) (value uint64) {
	for f := range protoenc.Fields(message) {
		if f.Num == num && !f.Bytes {
			value = f.Value
		}
	}
	return value
}

func jsonMember(dst []byte, name string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(append(dst, '"'), name...)
	return append(dst, `":`...)
}

func appendJSONText(dst []byte, name string, text []byte) []byte {
	if len(text) == 0 {
		return dst
	}
	return otlpdata.AppendJSONString(jsonMember(dst, name), unsafeString(text))
}

func appendJSONBytes(dst []byte, name string, content []byte) []byte {
	if len(content) == 0 {
		return dst
	}
	dst = append(jsonMember(dst, name), '"')
	return append(base64.StdEncoding.AppendEncode(dst, content), '"')
}

// appendJSONSpanID appends a span id, unless it is zero: existing collectors store it as a number.
func appendJSONSpanID(dst, id []byte) []byte {
	if len(bytes.Trim(id, "\x00")) == 0 {
		return dst
	}
	return appendJSONBytes(dst, "spanId", id)
}

// appendJSONList appends a list of the messages with a number, unless there are none.
func appendJSONList(dst []byte, name string, message []byte, num int, element func(dst, content []byte) []byte) []byte {
	n := 0
	for f := range protoenc.Fields(message) {
		if f.Num != num || !f.Bytes {
			continue
		}
		if n++; n == 1 {
			dst = append(jsonMember(dst, name), '[')
		} else {
			dst = append(dst, ',')
		}
		dst = element(dst, f.Content)
	}
	if n == 0 {
		return dst
	}
	return append(dst, ']')
}

func appendJSONReference(dst, reference []byte) []byte {
	dst = append(dst, '{')
	dst = appendJSONBytes(dst, "traceId", fieldOf(reference, refTraceID))
	dst = appendJSONSpanID(dst, fieldOf(reference, refSpanID))
	if byte(numberOf(reference, refRefType)) == followsFrom {
		dst = append(jsonMember(dst, "refType"), `"FOLLOWS_FROM"`...)
	}
	return append(dst, '}')
}

func appendJSONLog(dst, log []byte) []byte {
	dst = appendJSONTime(append(dst, '{'), "timestamp", fieldOf(log, logTimestamp))
	return append(appendJSONList(dst, "fields", log, logFields, appendJSONTag), '}')
}

var jsonTypes = [...]string{typeBool: "BOOL", typeInt64: "INT64", typeFloat64: "FLOAT64", typeBinary: "BINARY"}

func appendJSONTag(dst, tag []byte) []byte {
	dst = appendJSONText(append(dst, '{'), "key", fieldOf(tag, tagKey))
	typ := byte(numberOf(tag, tagType))
	if typ != 0 {
		dst = append(append(append(jsonMember(dst, "vType"), '"'), jsonTypes[typ]...), '"')
	}
	switch typ {
	case typeBool:
		if numberOf(tag, tagBool) != 0 {
			dst = append(jsonMember(dst, "vBool"), "true"...)
		}
	case typeInt64:
		if n := numberOf(tag, tagInt64); n != 0 {
			dst = append(strconv.AppendInt(append(jsonMember(dst, "vInt64"), '"'), int64(n), 10), '"')
		}
	case typeFloat64:
		if bits := numberOf(tag, tagFloat64); bits != 0 {
			dst = appendJSONFloat(jsonMember(dst, "vFloat64"), math.Float64frombits(bits))
		}
	case typeBinary:
		dst = appendJSONBytes(dst, "vBinary", fieldOf(tag, tagBinary))
	default:
		dst = appendJSONText(dst, "vStr", fieldOf(tag, tagString))
	}
	return append(dst, '}')
}

func appendJSONFloat(dst []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, `"NaN"`...)
	case math.IsInf(v, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(v, -1):
		return append(dst, `"-Infinity"`...)
	}
	return strconv.AppendFloat(dst, v, 'g', -1, 64)
}

// appendJSONTime appends a google.protobuf.Timestamp.
func appendJSONTime(dst []byte, name string, timestamp []byte) []byte {
	t := time.Unix(int64(numberOf(timestamp, timeSeconds)), int64(numberOf(timestamp, timeNanos))).UTC()
	dst = t.AppendFormat(append(jsonMember(dst, name), '"'), "2006-01-02T15:04:05")
	return append(appendJSONNanos(dst, int64(t.Nanosecond())), `Z"`...)
}

// appendJSONDuration appends a google.protobuf.Duration, unless it is zero.
func appendJSONDuration(dst []byte, name string, duration []byte) []byte {
	seconds, nanos := int64(numberOf(duration, timeSeconds)), int64(numberOf(duration, timeNanos))
	if seconds == 0 && nanos == 0 {
		return dst
	}
	dst = append(jsonMember(dst, name), '"')
	if seconds < 0 || nanos < 0 {
		dst, seconds, nanos = append(dst, '-'), -seconds, -nanos
	}
	return append(appendJSONNanos(strconv.AppendInt(dst, seconds, 10), nanos), `s"`...)
}

// appendJSONNanos appends a fraction of a second with 0, 3, 6 or 9 digits.
func appendJSONNanos(dst []byte, nanos int64) []byte {
	if nanos == 0 {
		return dst
	}
	digits := strconv.AppendInt(nil, nanosPerSecond+nanos, 10)[1:]
	for string(digits[len(digits)-3:]) == "000" {
		digits = digits[:len(digits)-3]
	}
	return append(append(dst, '.'), digits...)
}
