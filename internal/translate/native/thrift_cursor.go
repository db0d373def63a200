package native

import "encoding/binary"

// ThriftCursor reads the Thrift structs of another model. The first error sticks: from then on every list is empty, every struct at its
// end and every value zero, so only Err has to be asked. Lengths and counts are not believed beyond the bytes that are there; strings
// alias the input.
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

// ThriftField is the header of a field. The zero value stands for the beginning of a struct.
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

// NewThriftCursor begins to read b.
func NewThriftCursor(b []byte, enc Encoding) ThriftCursor {
	return ThriftCursor{thriftReader{b: b, compact: enc == Compact}}
}

// Err returns the first error.
func (c *ThriftCursor) Err() error { return c.r.err }

// Fail ends the reading, for errors of the caller's own.
func (c *ThriftCursor) Fail(err error) { c.r.fail(err) }

// Next reads the header of the struct's next field into f, which holds the one before. It returns false at the end of the struct.
func (c *ThriftCursor) Next(f *ThriftField) bool { return c.r.next(&f.f) }

// Key is the number of the field and its type in one: number<<8 | type.
func (f *ThriftField) Key() int32 { return f.f.key }

// Skip skips the value of a field.
func (c *ThriftCursor) Skip(f *ThriftField) { c.r.skip(&f.f) }

// List reads the header of a list of structs and returns how many there are, at most one for each byte that is left.
func (c *ThriftCursor) List() int { return c.r.list() }

// Bool returns the value of the field f.
func (c *ThriftCursor) Bool(f *ThriftField) bool { return c.r.boolean(&f.f) }

// I16 reads a number of 16 bits.
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

// I32 reads a number of 32 bits.
func (c *ThriftCursor) I32() int32 { return c.r.i32() }

// I64 reads a number of 64 bits.
func (c *ThriftCursor) I64() int64 { return c.r.i64() }

// Text reads a string, or bytes.
func (c *ThriftCursor) Text() string { return c.r.text() }
