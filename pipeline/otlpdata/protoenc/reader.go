package protoenc

import (
	"encoding/binary"
	"errors"
)

// Errors of [Reader]. They reach clients whose request is not a valid OTLP message.
var (
	ErrWireType  = errors.New("otlp: field has the wrong wire type")
	errTruncated = errors.New("otlp: message is truncated")
	errOverflow  = errors.New("otlp: varint overflows 64 bits")
	errLength    = errors.New("otlp: negative length")
	errTag       = errors.New("otlp: invalid field number")
	errGroup     = errors.New("otlp: groups are not supported")
)

// maxNumber is the maximum field number.
const maxNumber = 1<<29 - 1

// Reader reads the fields of messages one after the other and holds the last one. It accepts the
// messages that pdata accepts, except for field numbers and varints that protobuf does not allow,
// and groups, which proto3 does not have: pdata also accepts invalid ones. Other decoders reject
// what is invalid, and with it all spans of the message.
type Reader struct {
	Tag  uint32 // number<<3 | wire type
	Num  uint64 // the value of a scalar
	Data []byte // the content of a length-delimited field
}

// ReadVarint reads a base-128 number at pos and returns the position after it.
func ReadVarint(b []byte, pos int) (uint64, int, error) {
	var num uint64
	for shift := uint(0); shift < 64; shift += 7 {
		if pos >= len(b) {
			return 0, 0, errTruncated
		}
		c := b[pos]
		pos++
		num |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if shift == 63 && c > 1 {
				break
			}
			return num, pos, nil
		}
	}
	return 0, 0, errOverflow
}

// Next reads the field at pos and returns the position after it. Nearly all fields of a request
// have a tag of one byte and either a length of one or two bytes or a fixed size: Next reads these
// itself and leaves all others to value.
func (r *Reader) Next(b []byte, pos int) (int, error) {
	if pos+1 >= len(b) || b[pos] >= 0x80 || b[pos] < 1<<3 {
		return r.nextSlow(b, pos)
	}
	r.Tag = uint32(b[pos])
	pos++
	switch r.Tag & 7 {
	case Length:
		from, n := pos+1, int(b[pos])
		if n >= 0x80 && from < len(b) && b[from] < 0x80 {
			n, from = n&0x7f|int(b[from])<<7, from+1
		} else if n >= 0x80 {
			break
		}
		if n <= len(b)-from {
			r.Data = b[from : from+n : from+n]
			return from + n, nil
		}
	case Varint:
		if b[pos] < 0x80 {
			r.Num = uint64(b[pos])
			return pos + 1, nil
		}
	case Fixed64:
		if len(b)-pos >= 8 {
			r.Num = binary.LittleEndian.Uint64(b[pos:])
			return pos + 8, nil
		}
	}
	return r.value(b, pos)
}

func (r *Reader) nextSlow(b []byte, pos int) (int, error) {
	pos, err := r.readTag(b, pos)
	if err != nil {
		return 0, err
	}
	return r.value(b, pos)
}

// readTag reads the tag of a field at pos.
func (r *Reader) readTag(b []byte, pos int) (int, error) {
	tag, pos, err := ReadVarint(b, pos)
	if err != nil {
		return 0, err
	}
	if num := tag >> 3; num == 0 || num > maxNumber {
		return 0, errTag
	}
	r.Tag = uint32(tag)
	return pos, nil
}

// value reads the value of the field with the tag r.Tag at pos.
func (r *Reader) value(b []byte, pos int) (int, error) {
	switch r.Tag & 7 {
	case Varint:
		num, pos, err := ReadVarint(b, pos)
		r.Num = num
		return pos, err
	case Length:
		length, pos, err := ReadVarint(b, pos)
		n := int(length)
		switch {
		case err != nil:
			return 0, err
		case n < 0:
			return 0, errLength
		case n > len(b)-pos:
			return 0, errTruncated
		}
		r.Data = b[pos : pos+n : pos+n]
		return pos + n, nil
	case Fixed64:
		if len(b)-pos < 8 {
			return 0, errTruncated
		}
		r.Num = binary.LittleEndian.Uint64(b[pos:])
		return pos + 8, nil
	case Fixed32:
		if len(b)-pos < 4 {
			return 0, errTruncated
		}
		r.Num = uint64(binary.LittleEndian.Uint32(b[pos:]))
		return pos + 4, nil
	case StartGroup, EndGroup:
		return 0, errGroup
	}
	return 0, ErrWireType
}

// Unknown returns an error if the message defines the field, which then has the wrong type. known
// is the bit set of the field numbers below 64 that the message defines.
func (r *Reader) Unknown(known uint64) error {
	if n := r.Tag >> 3; n < 64 && known>>n&1 == 1 {
		return ErrWireType
	}
	return nil
}
