package otlpdata

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

var (
	errJSONCut   = errors.New("otlp: JSON ends before its object does")
	errJSONTail  = errors.New("otlp: JSON goes on after its object; send one object per request")
	errJSONStart = errors.New("otlp: JSON must be an object with resourceSpans")
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
		return nil, fmt.Errorf("otlp: JSON: %w", err)
	}
	enc, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		return nil, fmt.Errorf("otlp: JSON: %w", err)
	}
	return FromOTLP(enc, m, lim)
}

// scanJSON checks that b is one bracketed text, nested no deeper than values of that depth can be, and nothing after it. The decoder
// would recurse without bound, and would ignore what follows the object.
func scanJSON(b []byte, depth int) error {
	limit := jsonBracketsAround + jsonBracketsPerValue*depth
	open, quoted, started := 0, false, false
	for i := 0; i < len(b); i++ {
		c := b[i]
		if quoted {
			switch c {
			case '\\':
				i++
			case '"':
				quoted = false
			}
			continue
		}
		switch c {
		case ' ', '\t', '\r', '\n':
			continue
		case '{', '[':
			if started && open == 0 {
				return errJSONTail
			}
			if open++; open > limit {
				return errTooDeep(depth)
			}
		case '}', ']':
			if open--; open < 0 {
				return errJSONStart
			}
		case '"':
			quoted = true
		}
		switch {
		case !started && c != '{':
			return errJSONStart
		case open == 0 && c != '}' && c != ']':
			return errJSONTail
		}
		started = true
	}
	switch {
	case !started:
		return errJSONStart
	case open > 0 || quoted:
		return errJSONCut
	}
	return nil
}
