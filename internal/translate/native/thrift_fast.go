package native

import (
	"encoding/binary"
	"math"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Tags are most of a batch, and clients write nearly all of them in one form: key, type and the
// value of this type, in this order, with short strings. This file reads this form; thriftTag reads
// all others.

// fastTag reads a tag of the usual form. For any other form it reads nothing and returns false.
func (r *thriftReader) fastTag(kv *otlpdata.KeyValue) bool {
	size := 0
	if r.compact {
		size = fastCompactTag(r.b[r.pos:], kv)
	} else {
		size = fastBinaryTag(r.b[r.pos:], kv)
	}
	r.pos += size
	return size > 0
}

// fastCompactTag reads a tag in the compact protocol. It returns the size of the tag, or 0 for an
// unusual form. The header of a field is its distance from the previous field and its type; the
// type of the tag is in zigzag encoding.
func fastCompactTag(b []byte, kv *otlpdata.KeyValue) int {
	const key, typ, str, long, yes, no = 0x18, 0x15, 0x18, 0x46, 0x31, 0x32
	if len(b) < 2 || b[0] != key || b[1] >= 0x80 {
		return 0
	}
	at := 2 + int(b[1])
	if len(b) < at+5 || b[at] != typ {
		return 0
	}
	value := b[at+3:]
	size := 0
	switch [2]byte{b[at+1], b[at+2]} {
	case [2]byte{0, str}:
		size = 1 + int(value[0])
		if value[0] >= 0x80 || size >= len(value) {
			return 0
		}
		kv.Value = otlpdata.StringValue(unsafeString(value[1:size]))
	case [2]byte{3 << 1, long}:
		var n uint64
		if n, size = binary.Uvarint(value); size <= 0 || size >= len(value) {
			return 0
		}
		kv.Value = otlpdata.IntValue(int64(n>>1) ^ -int64(n&1))
	case [2]byte{2 << 1, yes}:
		kv.Value = otlpdata.BoolValue(true)
	case [2]byte{2 << 1, no}:
		kv.Value = otlpdata.BoolValue(false)
	default:
		return 0
	}
	if value[size] != byte(thriftStop) {
		return 0
	}
	kv.Key = unsafeString(b[2:at])
	return at + 3 + size + 1
}

// fastBinaryTag is fastCompactTag for the binary protocol.
func fastBinaryTag(b []byte, kv *otlpdata.KeyValue) int {
	const header = 1 + 2 // of a field: type and number
	const key, typ = 0x0b0001, 0x080002
	const str, double, truth, long = 0x0b0003, 0x040004, 0x020005, 0x0a0006
	if len(b) < header+4 || binary.BigEndian.Uint32(b)>>8 != key {
		return 0
	}
	n := uint64(binary.BigEndian.Uint32(b[header:]))
	const rest = header + 4 + header + 4 // type, header and at least four bytes of value
	if n > uint64(len(b)) || uint64(len(b)) < header+4+n+rest {
		return 0
	}
	at := header + 4 + int(n)
	if binary.BigEndian.Uint32(b[at:])>>8 != typ {
		return 0
	}
	value := b[at+header+4+header:]
	size := 8
	switch [2]uint32{binary.BigEndian.Uint32(b[at+header:]), binary.BigEndian.Uint32(b[at+header+4:]) >> 8} {
	case [2]uint32{0, str}:
		n := binary.BigEndian.Uint32(value)
		if size = 4 + int(n); uint64(n)+4 >= uint64(len(value)) {
			return 0
		}
		kv.Value = otlpdata.StringValue(unsafeString(value[4:size]))
	case [2]uint32{1, double}:
		if size >= len(value) {
			return 0
		}
		kv.Value = otlpdata.DoubleValue(math.Float64frombits(binary.BigEndian.Uint64(value)))
	case [2]uint32{2, truth}:
		size = 1
		kv.Value = otlpdata.BoolValue(value[0] == 1)
	case [2]uint32{3, long}:
		if size >= len(value) {
			return 0
		}
		kv.Value = otlpdata.IntValue(int64(binary.BigEndian.Uint64(value)))
	default:
		return 0
	}
	if value[size] != byte(thriftStop) {
		return 0
	}
	kv.Key = unsafeString(b[header+4 : at])
	return at + header + 4 + header + size + 1
}
