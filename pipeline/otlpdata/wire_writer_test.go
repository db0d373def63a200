package otlpdata

import (
	"encoding/binary"
	"math"

	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// The tests write the wire format themselves, because encoders do not write unusual forms.

func cat(parts ...[]byte) []byte {
	out := []byte{}
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func tag(num uint64, typ byte) []byte { return binary.AppendUvarint(nil, num<<3|uint64(typ)) }

func fieldLen(num uint64, parts ...[]byte) []byte {
	b := cat(parts...)
	return cat(tag(num, protoenc.Length), binary.AppendUvarint(nil, uint64(len(b))), b)
}

func fieldText(num uint64, s string) []byte { return fieldLen(num, []byte(s)) }

func fieldVarint(num, v uint64) []byte {
	return cat(tag(num, protoenc.Varint), binary.AppendUvarint(nil, v))
}

func field64(num, v uint64) []byte {
	return cat(tag(num, protoenc.Fixed64), binary.LittleEndian.AppendUint64(nil, v))
}

func field32(num uint64, v uint32) []byte {
	return cat(tag(num, protoenc.Fixed32), binary.LittleEndian.AppendUint32(nil, v))
}

// longVarint encodes v in exactly size bytes, which may be more than necessary.
func longVarint(v uint64, size int) []byte {
	out := make([]byte, size)
	for i := range out {
		out[i] = byte(v)&0x7f | 0x80
		v >>= 7
	}
	out[size-1] &= 0x7f
	return out
}

func attribute(num uint64, key string, value ...[]byte) []byte {
	return fieldLen(num, fieldText(1, key), fieldLen(2, value...))
}

func stringAttribute(num uint64, key, value string) []byte {
	return attribute(num, key, fieldText(1, value))
}

// wireSpan returns the content of a span with an id, a name and times.
func wireSpan(more ...[]byte) []byte {
	return cat(fieldText(1, "0123456789abcdef"), fieldText(2, "01234567"), fieldText(5, "GET /"),
		field64(7, 1_700_000_000_000_000_000), field64(8, 1_700_000_000_100_000_000), cat(more...))
}

func wireResource(service string) []byte {
	return fieldLen(1, stringAttribute(1, "service.name", service))
}

// request returns a request with one resource, one scope and these spans.
func request(spans ...[]byte) []byte {
	var scope []byte
	for _, s := range spans {
		scope = append(scope, fieldLen(2, s)...)
	}
	return fieldLen(1, wireResource("cart"), fieldLen(2, scope))
}

// nest wraps a string value in levels-1 arrays and maps. pattern is a repeated sequence of 'a' and
// 'm'.
func nest(levels int, pattern string) []byte {
	// Build the bytes in reverse from the inside out, so that deep values take linear time.
	rev := func(b []byte) []byte {
		for i, j := 0, len(b)-1; i < j; i, j = i+1, j-1 {
			b[i], b[j] = b[j], b[i]
		}
		return b
	}
	out := rev(fieldText(1, "x"))
	wrap := func(num uint64) {
		out = append(out, rev(cat(tag(num, protoenc.Length), binary.AppendUvarint(nil, uint64(len(out)))))...)
	}
	for i := range levels - 1 {
		if pattern[i%len(pattern)] == 'a' {
			wrap(1)
			wrap(5)
			continue
		}
		wrap(2)
		wrap(1)
		wrap(6)
	}
	return rev(out)
}

func unlimited() Limits {
	return Limits{Bytes: math.MaxInt, Spans: math.MaxInt, Depth: math.MaxInt, Items: math.MaxInt}
}
