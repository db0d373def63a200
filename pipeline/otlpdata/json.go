package otlpdata

import (
	"bytes"
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

var (
	errJSONCut   = errors.New("otlp: JSON object is truncated")
	errJSONTail  = errors.New("otlp: JSON object is followed by more data; send one object per request")
	errJSONStart = errors.New("otlp: JSON must be an object with resourceSpans")
	errLogsStart = errors.New("otlp: JSON must be an object with resourceLogs")
	errJSONName  = errors.New("otlp: JSON object has a member with an empty name")
)

// jsonBracketsPerValue is the maximum number of brackets that one level of attribute values adds in
// OTLP/JSON: the value, the list, its array and the entry. jsonBracketsAround is the maximum number
// of brackets around the outermost value.
const (
	jsonBracketsPerValue = 4
	jsonBracketsAround   = 16
)

// MaxJSONBrackets returns the maximum number of open brackets in OTLP/JSON whose attribute values
// are nested no deeper than depth.
func MaxJSONBrackets(depth int) int { return jsonBracketsAround + jsonBracketsPerValue*depth }

// FromJSON returns a Batch for a request in OTLP/JSON (opentelemetry-proto, "JSON Protobuf
// Encoding") with spans or, with [SignalLogs], log records. Size and nesting are checked before
// anything is decoded, the other limits afterwards. Errors are the same as for [FromOTLP].
func FromJSON(b []byte, m Meta, lim Limits) (*Batch, error) {
	lim = lim.orDefault()
	if len(b) > lim.Bytes {
		return nil, errTooManyBytes(lim.Bytes)
	}
	if err := scanJSON(b, lim.Depth); err != nil {
		if err == errJSONStart && m.Signal == SignalLogs {
			err = errLogsStart
		}
		return nil, err
	}
	enc, err := jsonToProto(b, m.Signal)
	if err != nil {
		return nil, fmt.Errorf("otlp: JSON: %s", shorten(err.Error()))
	}
	return FromOTLP(enc, m, lim)
}

func jsonToProto(b []byte, s Signal) ([]byte, error) {
	if s == SignalLogs {
		ld, err := (&plog.JSONUnmarshaler{}).UnmarshalLogs(b)
		if err != nil {
			return nil, err
		}
		return (&plog.ProtoMarshaler{}).MarshalLogs(ld)
	}
	td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(b)
	if err != nil {
		return nil, err
	}
	return (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
}

// shorten truncates the text of a decoder error, which quotes values in full.
func shorten(text string) string {
	const maxLength = 300
	if len(text) <= maxLength {
		return text
	}
	return text[:maxLength] + "..."
}

// scanJSON checks that b is exactly one bracketed text, nested no deeper than attribute values of
// that depth can be. The decoder does not check this: it recurses without limit, ignores data after
// the object, and treats a member with an empty name as the end of the object.
func scanJSON(b []byte, depth int) error {
	b = bytes.Trim(b, jsonSpace)
	if len(b) == 0 || b[0] != '{' {
		return errJSONStart
	}
	limit := MaxJSONBrackets(depth)
	open := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			if open++; open > limit {
				return errTooDeep(depth)
			}
		case '}', ']':
			if open--; open > 0 {
				continue
			}
			if i+1 < len(b) {
				return errJSONTail
			}
			return nil
		case '"':
			n := jsonStringLen(b[i+1:])
			i += n + 1
			if n == 0 && i < len(b) && startsWithColon(b[i+1:]) {
				return errJSONName
			}
		}
	}
	return errJSONCut
}

const jsonSpace = " \t\r\n"

// jsonStringLen returns the number of bytes before the closing quote of a JSON string, or len(b) if
// there is none.
func jsonStringLen(b []byte) int {
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(b)
}

func startsWithColon(b []byte) bool {
	b = bytes.TrimLeft(b, jsonSpace)
	return len(b) > 0 && b[0] == ':'
}

// JSONMemory returns an upper bound for the memory that [FromJSON] needs in addition to the
// request, in bytes. A brace, or a null in a list, may be an empty span, which is the largest
// object relative to its text. A comma may separate two strings in a list. Text is in memory twice:
// in the objects and encoded.
func JSONMemory(body []byte) int64 {
	const perObject, perElement, perByte = 256, 96, 2
	objects := bytes.Count(body, []byte{'{'}) + bytes.Count(body, []byte("null"))
	elements := bytes.Count(body, []byte{','})
	return max(int64(objects)*perObject, int64(elements)*perElement) + int64(len(body))*perByte
}
