package native

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unsafe"
)

// thriftType is a Thrift type with its number in the binary protocol
// (https://github.com/apache/thrift/tree/master/doc/specs).
type thriftType uint8

const (
	thriftStop   thriftType = 0
	thriftBool   thriftType = 2
	thriftByte   thriftType = 3
	thriftDouble thriftType = 4
	thriftI16    thriftType = 6
	thriftI32    thriftType = 8
	thriftI64    thriftType = 10
	thriftString thriftType = 11
	thriftStruct thriftType = 12
	thriftMap    thriftType = 13
	thriftSet    thriftType = 14
	thriftList   thriftType = 15
	thriftUUID   thriftType = 16

	thriftUnknown thriftType = 255
)

// compactTypes maps the type numbers of the compact protocol. Two of them are booleans: in the
// header of a field they are also its value.
var compactTypes = [16]thriftType{thriftStop, thriftBool, thriftBool, thriftByte, thriftI16, thriftI32, thriftI64, thriftDouble,
	thriftString, thriftList, thriftSet, thriftMap, thriftStruct, thriftUUID, thriftUnknown, thriftUnknown}

var (
	errThriftTruncated = errors.New("thrift: message is truncated")
	errThriftVarint    = errors.New("thrift: varint overflows 64 bits")
	errThriftType      = errors.New("thrift: unknown type")
	errThriftNesting   = errors.New("thrift: values are nested too deeply")
)

// thriftReader reads Thrift in either protocol. After the first error there is nothing left to
// read: every method returns a zero value and every loop over fields or elements ends. Lengths and
// counts are checked against the remaining input.
type thriftReader struct {
	b       []byte
	pos     int
	compact bool
	err     error
}

// thriftField is the header of a field. The zero value is the state before the first field.
type thriftField struct {
	id    int16
	typ   thriftType
	truth bool // value of a boolean in the compact protocol
	// key is id<<8 | typ, for switches.
	key int32
}

func (r *thriftReader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.b, r.pos = nil, 0
}

// next reads the header of the next field of the struct into f, which must hold the previous field.
// It returns false at the end of the struct.
func (r *thriftReader) next(f *thriftField) bool {
	if r.pos >= len(r.b) {
		r.fail(errThriftTruncated)
		return false
	}
	c := r.b[r.pos]
	r.pos++
	if !r.compact {
		return r.nextBinary(f, thriftType(c))
	}
	f.typ = compactTypes[c&15]
	if f.typ == thriftStop {
		return false
	}
	f.truth = c&15 == 1
	if delta := c >> 4; delta > 0 {
		f.id += int16(delta)
	} else {
		f.id = int16(r.i32())
	}
	f.key = int32(f.id)<<8 | int32(f.typ)
	return r.err == nil
}

func (r *thriftReader) nextBinary(f *thriftField, typ thriftType) bool {
	if typ == thriftStop {
		return false
	}
	if len(r.b)-r.pos < 2 {
		r.fail(errThriftTruncated)
		return false
	}
	f.typ, f.id = typ, int16(binary.BigEndian.Uint16(r.b[r.pos:]))
	f.key = int32(f.id)<<8 | int32(typ)
	r.pos += 2
	return true
}

// varint reads a base-128 number of at most ten bytes.
func (r *thriftReader) varint() uint64 {
	var n uint64
	b := r.b
	for i, shift := r.pos, uint(0); shift < 70; i, shift = i+1, shift+7 {
		if i >= len(b) {
			r.fail(errThriftTruncated)
			return 0
		}
		c := b[i]
		n |= uint64(c&0x7f) << shift
		if c < 0x80 {
			r.pos = i + 1
			return n
		}
	}
	r.fail(errThriftVarint)
	return 0
}

func (r *thriftReader) zigzag() int64 {
	if r.pos < len(r.b) && r.b[r.pos] < 0x80 {
		n := r.b[r.pos]
		r.pos++
		return int64(n>>1) ^ -int64(n&1)
	}
	n := r.varint()
	return int64(n>>1) ^ -int64(n&1)
}

func (r *thriftReader) i64() int64 {
	if r.compact {
		return r.zigzag()
	}
	return int64(r.fixed64())
}

func (r *thriftReader) fixed64() uint64 {
	if len(r.b)-r.pos < 8 {
		r.fail(errThriftTruncated)
		return 0
	}
	n := binary.BigEndian.Uint64(r.b[r.pos:])
	r.pos += 8
	return n
}

func (r *thriftReader) i32() int32 {
	if r.compact {
		n := uint32(r.varint()) // bits above 32 are dropped
		return int32(n>>1) ^ -int32(n&1)
	}
	return r.fixed32()
}

func (r *thriftReader) fixed32() int32 {
	if len(r.b)-r.pos < 4 {
		r.fail(errThriftTruncated)
		return 0
	}
	n := int32(binary.BigEndian.Uint32(r.b[r.pos:]))
	r.pos += 4
	return n
}

// double reads a floating-point number. It is little-endian in the compact protocol and big-endian
// in the binary protocol.
func (r *thriftReader) double() float64 {
	if len(r.b)-r.pos < 8 {
		r.fail(errThriftTruncated)
		return 0
	}
	b := r.b[r.pos:]
	r.pos += 8
	if r.compact {
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	return math.Float64frombits(binary.BigEndian.Uint64(b))
}

// boolean reads the value of the boolean field f.
func (r *thriftReader) boolean(f *thriftField) bool {
	if r.compact {
		return f.truth
	}
	if r.pos >= len(r.b) {
		r.fail(errThriftTruncated)
		return false
	}
	r.pos++
	return r.b[r.pos-1] == 1
}

// text reads a string or bytes. The result aliases the input.
func (r *thriftReader) text() string {
	n := r.length()
	if n == 0 {
		return ""
	}
	s := unsafe.String(&r.b[r.pos], n)
	r.pos += n
	return s
}

// length reads the length of a string or the number of elements of a container and checks it
// against the remaining input: each element takes at least one byte.
func (r *thriftReader) length() int {
	var n uint64
	switch {
	case !r.compact:
		n = uint64(r.fixed32()) // a negative length becomes very large
	case r.pos < len(r.b) && r.b[r.pos] < 0x80:
		n = uint64(r.b[r.pos])
		r.pos++
	default:
		n = uint64(int32(r.varint()))
	}
	if n > uint64(len(r.b)-r.pos) {
		r.fail(errThriftTruncated)
		return 0
	}
	return int(n)
}

// list reads the header of a list of structs and returns the number of its elements.
func (r *thriftReader) list() int {
	elem, n := r.container()
	if n > 0 && elem != thriftStruct {
		r.fail(fmt.Errorf("thrift: list has elements of type %d, not structs", elem))
		return 0
	}
	return n
}

// container reads the header of a list or set.
func (r *thriftReader) container() (elem thriftType, n int) {
	if r.pos >= len(r.b) {
		r.fail(errThriftTruncated)
		return 0, 0
	}
	c := r.b[r.pos]
	r.pos++
	if !r.compact {
		return thriftType(c), r.length()
	}
	if n = int(c >> 4); n == 15 {
		n = r.length()
	}
	elem = compactTypes[c&15]
	switch {
	case elem == thriftUnknown:
		r.fail(errThriftType)
	case n > len(r.b)-r.pos:
		r.fail(errThriftTruncated)
	default:
		return elem, n
	}
	return 0, 0
}
