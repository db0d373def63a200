package otlpdata

import (
	"bytes"
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

var (
	errJSONCut   = errors.New("otlp: JSON ends before its object does")
	errJSONTail  = errors.New("otlp: JSON goes on after its object; send one object per request")
	errJSONStart = errors.New("otlp: JSON must be an object with resourceSpans")
	errJSONName  = errors.New("otlp: JSON has a member with an empty name")
)

// jsonBracketsPerValue is how many brackets one level of attribute values adds at most in OTLP/JSON: the value, the list, its array and
// the entry. jsonBracketsAround is what stands around the outermost value.
const (
	jsonBracketsPerValue = 4
	jsonBracketsAround   = 16
)

// FromJSON makes a Batch of a request in OTLP/JSON (opentelemetry-proto, "JSON Protobuf Encoding"). Size and nesting are checked before
// anything is decoded, the other limits after. Errors are as in [FromOTLP].
func FromJSON(b []byte, m Meta, lim Limits) (*Batch, error) {
	lim = lim.orDefault()
	if len(b) > lim.Bytes {
		return nil, errTooManyBytes(lim.Bytes)
	}
	if err := scanJSON(b, lim.Depth); err != nil {
		return nil, err
	}
	td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(b)
	if err != nil {
		return nil, fmt.Errorf("otlp: JSON: %s", shorten(err.Error()))
	}
	enc, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		return nil, fmt.Errorf("otlp: JSON: %w", err)
	}
	return FromOTLP(enc, m, lim)
}

// shorten cuts the text of an error, since the decoder quotes values in full.
func shorten(text string) string {
	const most = 300
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}

// scanJSON checks that b is one bracketed text, nested no deeper than values of that depth can be, and nothing after it. The decoder
// would recurse without bound, would ignore what follows the object, and takes a member with an empty name for the object's end.
func scanJSON(b []byte, depth int) error {
	b = bytes.Trim(b, jsonSpace)
	if len(b) == 0 || b[0] != '{' {
		return errJSONStart
	}
	limit := jsonBracketsAround + jsonBracketsPerValue*depth
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

// jsonStringLen returns the number of bytes before the quote that ends a JSON string, or of all bytes if none does.
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
