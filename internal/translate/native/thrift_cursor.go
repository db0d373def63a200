package native

import "encoding/binary"

// ThriftCursor reads the Thrift structs of another model. After the first error every list is
// empty, every struct is at its end and every value is zero, so that only Err has to be checked.
// Lengths and counts are checked against the remaining input. Strings alias the input.
//
//	var f native.ThriftField
//	for c.Next(&f) {
//		switch f.Key() {
//		case 1<<8 | native.ThriftI64:
//			id = c.I64()
//		default:
//			c.Skip(&f)
//		}
//	}
type ThriftCursor struct{ r thriftReader }

// ThriftField is the header of a field. The zero value is the state before the first field.
type ThriftField struct{ f thriftField }

// Types of fields.
const (
	ThriftBool   = int32(thriftBool)
	ThriftI16    = int32(thriftI16)
	ThriftI32    = int32(thriftI32)
	ThriftI64    = int32(thriftI64)
	ThriftString = int32(thriftString) // or bytes
	ThriftStruct = int32(thriftStruct)
	ThriftList   = int32(thriftList)
)

// NewThriftCursor returns a cursor at the start of b.
func NewThriftCursor(b []byte, enc Encoding) ThriftCursor {
	return ThriftCursor{thriftReader{b: b, compact: enc == Compact}}
}

// Err returns the first error.
func (c *ThriftCursor) Err() error { return c.r.err }

// Fail records an error of the caller and ends the reading.
func (c *ThriftCursor) Fail(err error) { c.r.fail(err) }

// Next reads the header of the next field of the struct into f, which must hold the previous field.
// It returns false at the end of the struct.
func (c *ThriftCursor) Next(f *ThriftField) bool { return c.r.next(&f.f) }

// Key returns the number and the type of the field as number<<8 | type.
func (f *ThriftField) Key() int32 { return f.f.key }

// Skip skips the value of a field.
func (c *ThriftCursor) Skip(f *ThriftField) { c.r.skip(&f.f) }

// List reads the header of a list of structs and returns the number of elements, which is at most
// the number of remaining bytes.
func (c *ThriftCursor) List() int { return c.r.list() }

// Bool returns the value of the field f.
func (c *ThriftCursor) Bool(f *ThriftField) bool { return c.r.boolean(&f.f) }

// I16 reads a 16-bit integer.
func (c *ThriftCursor) I16() int16 {
	if c.r.compact {
		return int16(c.r.zigzag())
	}
	from := c.r.pos
	if c.r.advance(2); c.r.err != nil {
		return 0
	}
	return int16(binary.BigEndian.Uint16(c.r.b[from:]))
}

// I32 reads a 32-bit integer.
func (c *ThriftCursor) I32() int32 { return c.r.i32() }

// I64 reads a 64-bit integer.
func (c *ThriftCursor) I64() int64 { return c.r.i64() }

// Text reads a string or bytes.
func (c *ThriftCursor) Text() string { return c.r.text() }
