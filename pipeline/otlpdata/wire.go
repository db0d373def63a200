package otlpdata

import (
	"encoding/binary"
	"errors"
	"unsafe"
)

// Wire types of the protobuf encoding (https://protobuf.dev/programming-guides/encoding/).
const (
	wireVarint     = 0
	wireI64        = 1
	wireLen        = 2
	wireStartGroup = 3
	wireEndGroup   = 4
	wireI32        = 5
)

// Errors of the wire format. They are permanent: a request with one of them is not a valid OTLP
// message.
var (
	errTruncated = errors.New("otlp: message is truncated")
	errOverflow  = errors.New("otlp: varint overflows 64 bits")
	errLength    = errors.New("otlp: negative length")
	errTag       = errors.New("otlp: invalid field number")
	errWireType  = errors.New("otlp: field has the wrong wire type")
	errGroup     = errors.New("otlp: unexpected end of group")
	errTraceID   = errors.New("otlp: trace id must have 0 or 16 bytes")
	errDepth     = errors.New("otlp: attribute values are nested too deeply")
	errSpanID    = errors.New("otlp: span id must have 0 or 8 bytes")
)

// field is one decoded protobuf field. A group is returned with only its tag consumed.
type field struct {
	key  uint32 // number<<3 | wire type
	num  uint64 // the value of a scalar
	data []byte // the content of a length-delimited field
}

// varint reads a base-128 number at pos. Like pdata it accepts up to ten bytes and drops the excess
// bits of the tenth.
func varint(b []byte, pos int) (uint64, int, error) {
	var num uint64
	for shift := uint(0); shift < 64; shift += 7 {
		if pos >= len(b) {
			return 0, 0, errTruncated
		}
		c := b[pos]
		pos++
		num |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return num, pos, nil
		}
	}
	return 0, 0, errOverflow
}

// readTag reads the tag of a field at pos. The field number is the low 32 bits of tag>>3, as in
// pdata.
func readTag(b []byte, pos int) (uint32, int, error) {
	tag, pos, err := varint(b, pos)
	if err != nil {
		return 0, 0, err
	}
	num := int32(tag >> 3)
	if num <= 0 {
		return 0, 0, errTag
	}
	if num > 1<<28 {
		// Larger numbers do not fit into 32 bits together with the type. They are unknown in every
		// message, so one number represents all of them.
		num = 1 << 28
	}
	return uint32(num)<<3 | uint32(tag&7), pos, nil
}

// next reads the field at pos and returns the position after it. Nearly all fields of a request
// have a tag of one byte and either a length of one or two bytes or a fixed size: next reads these
// itself and leaves all others to value.
func (f *field) next(b []byte, pos int) (int, error) {
	if pos+1 >= len(b) || b[pos] >= 0x80 || b[pos] < 1<<3 {
		return f.nextSlow(b, pos)
	}
	f.key = uint32(b[pos])
	pos++
	switch f.key & 7 {
	case wireLen:
		from, n := pos+1, int(b[pos])
		if n >= 0x80 && from < len(b) && b[from] < 0x80 {
			n, from = n&0x7f|int(b[from])<<7, from+1
		} else if n >= 0x80 {
			break
		}
		if n <= len(b)-from {
			f.data = b[from : from+n : from+n]
			return from + n, nil
		}
	case wireVarint:
		if b[pos] < 0x80 {
			f.num = uint64(b[pos])
			return pos + 1, nil
		}
	case wireI64:
		if len(b)-pos >= 8 {
			f.num = binary.LittleEndian.Uint64(b[pos:])
			return pos + 8, nil
		}
	}
	return f.value(b, pos)
}

func (f *field) nextSlow(b []byte, pos int) (int, error) {
	key, pos, err := readTag(b, pos)
	if err != nil {
		return 0, err
	}
	f.key = key
	return f.value(b, pos)
}

// value reads the value of the field with the tag f.key at pos.
func (f *field) value(b []byte, pos int) (int, error) {
	var err error
	switch f.key & 7 {
	case wireVarint:
		f.num, pos, err = varint(b, pos)
		return pos, err
	case wireLen:
		var n int
		if n, pos, err = length(b, pos); err != nil {
			return 0, err
		}
		if n > len(b)-pos {
			return 0, errTruncated
		}
		f.data = b[pos : pos+n : pos+n]
		return pos + n, nil
	case wireI64:
		if len(b)-pos < 8 {
			return 0, errTruncated
		}
		f.num = binary.LittleEndian.Uint64(b[pos:])
		return pos + 8, nil
	case wireI32:
		if len(b)-pos < 4 {
			return 0, errTruncated
		}
		f.num = uint64(binary.LittleEndian.Uint32(b[pos:]))
		return pos + 4, nil
	case wireStartGroup:
		return pos, nil
	case wireEndGroup:
		return 0, errGroup
	}
	return 0, errWireType
}

// length reads the length of a length-delimited field.
func length(b []byte, pos int) (int, int, error) {
	u, pos, err := varint(b, pos)
	if err != nil {
		return 0, 0, err
	}
	n := int(u)
	if n < 0 {
		return 0, 0, errLength
	}
	return n, pos, nil
}

// unknown skips the rest of a field that the message does not define. known is the bit set of the
// field numbers below 64 that the message defines: such a field has the wrong type. Only a group
// has something left to skip.
func (f *field) unknown(b []byte, pos int, known uint64) (int, error) {
	if n := f.key >> 3; n < 64 && known>>n&1 == 1 {
		return 0, errWireType
	}
	if f.key&7 != wireStartGroup {
		return pos, nil
	}
	return skipGroup(b, pos)
}

// skipGroup skips a group after its start tag. It accepts what pdata accepts, which is less than
// the format allows: nested groups without fields, and not at the very end of a message. Groups do
// not occur in practice; agreement with pdata matters more than correctness here.
func skipGroup(b []byte, pos int) (int, error) {
	depth := 0
	f := field{key: wireStartGroup}
	for pos < len(b) {
		switch f.key & 7 {
		case wireStartGroup:
			depth++
		case wireEndGroup:
			if depth--; depth == 0 {
				return pos, nil
			}
		default:
			return f.value(b, pos)
		}
		var err error
		if f.key, pos, err = readTag(b, pos); err != nil {
			return 0, err
		}
	}
	return 0, errTruncated
}

// unsafeString returns b as a string without copying. This is safe because chunks are immutable.
func unsafeString(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// unsafeBytes returns s as bytes without copying. They must not be changed.
func unsafeBytes(s string) []byte {
	return unsafe.Slice(unsafe.StringData(s), len(s))
}
