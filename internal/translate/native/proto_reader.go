package native

import (
	"encoding/binary"
	"errors"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

var errProtoNumber = errors.New("protobuf: invalid field number")

// protoReader reads the fields of one protobuf message. After the first error, next returns false
// and err keeps the error.
//
//	r := protoReader{b: b}
//	for r.next() {
//		switch r.key {
//		case spanFlags<<3 | protoenc.Varint:
//	...
//	return r.err
type protoReader struct {
	b   []byte
	pos int
	err error

	key  uint32 // number<<3 | wire type
	num  uint64 // the value of a scalar
	data []byte // the content of a length-delimited field; aliases b, without spare capacity
}

// next reads the next field. It returns false at the end of the message and after an error. Nearly
// all fields have a tag of one byte and a length of one or two bytes: next reads these itself.
func (r *protoReader) next() bool {
	b, pos := r.b, r.pos
	if pos+1 >= len(b) || b[pos] >= 0x80 || b[pos] < 1<<3 {
		return r.nextSlow()
	}
	r.key = uint32(b[pos])
	switch r.key & 7 {
	case protoenc.Length:
		from, n := pos+2, int(b[pos+1])
		if n >= 0x80 {
			if from >= len(b) || b[from] >= 0x80 {
				return r.nextSlow()
			}
			n, from = n&0x7f|int(b[from])<<7, from+1
		}
		if n <= len(b)-from {
			r.data, r.pos = b[from:from+n:from+n], from+n
			return true
		}
	case protoenc.Varint:
		if c := b[pos+1]; c < 0x80 {
			r.num, r.pos = uint64(c), pos+2
			return true
		}
	case protoenc.Fixed64:
		if len(b)-pos > 8 {
			r.num, r.pos = binary.LittleEndian.Uint64(b[pos+1:]), pos+9
			return true
		}
	}
	return r.nextSlow()
}

// nextSlow reads any field. It skips groups.
func (r *protoReader) nextSlow() bool {
	if r.err != nil || r.pos >= len(r.b) {
		return false
	}
	num, typ, n := protowire.ConsumeTag(r.b[r.pos:])
	if n < 0 {
		return r.fail(protowire.ParseError(n))
	}
	if num > protowire.MaxValidNumber {
		return r.fail(errProtoNumber)
	}
	r.key = uint32(num)<<3 | uint32(typ)
	value := r.b[r.pos+n:]
	size := protowire.ConsumeFieldValue(num, typ, value)
	if size < 0 {
		return r.fail(protowire.ParseError(size))
	}
	r.pos += n + size
	switch typ {
	case protowire.VarintType:
		r.num, _ = protowire.ConsumeVarint(value)
	case protowire.Fixed64Type:
		r.num, _ = protowire.ConsumeFixed64(value)
	case protowire.BytesType:
		data, _ := protowire.ConsumeBytes(value)
		r.data = slices.Clip(data)
	}
	return true
}

// fail records an error and ends the message. It returns false.
func (r *protoReader) fail(err error) bool {
	if r.err == nil {
		r.err = err
	}
	r.b, r.pos = nil, 0
	return false
}
