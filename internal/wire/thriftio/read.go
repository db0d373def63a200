package thriftio

import (
	"context"
	"fmt"

	"github.com/apache/thrift/lib/go/thrift"
)

// preallocated is the most elements of a list that are allocated before they have been read.
const preallocated = 16

// Reader reads the fields of one struct. After an error its methods do nothing; End returns it.
//
//	r := thriftio.NewReader(ctx, in)
//	for r.Next() {
//		switch r.ID() {
//		case 1:
//			thriftio.Read(r, &x.Count)
//		default:
//			r.Skip()
//		}
//	}
//	r.Require(1, "count")
//	return r.End()
type Reader struct {
	ctx  context.Context
	in   thrift.TProtocol
	id   int16
	typ  thrift.TType
	seen uint64 // bit i: the field i, below 64, has been read
	open bool   // a field has begun and not ended
	err  error
}

// NewReader begins a struct.
func NewReader(ctx context.Context, in thrift.TProtocol) *Reader {
	r := &Reader{ctx: ctx, in: in}
	_, r.err = in.ReadStructBegin(ctx)
	return r
}

// Next goes on to the next field. It returns false at the end of the struct and after an error.
func (r *Reader) Next() bool {
	if r.open && r.err == nil {
		r.err = r.in.ReadFieldEnd(r.ctx)
	}
	if r.err != nil {
		return false
	}
	_, r.typ, r.id, r.err = r.in.ReadFieldBegin(r.ctx)
	r.open = true
	return r.err == nil && r.typ != thrift.STOP
}

// ID is the number of the current field.
func (r *Reader) ID() int16 { return r.id }

// Skip passes over the current field.
func (r *Reader) Skip() {
	if r.err == nil {
		r.err = r.in.Skip(r.ctx, r.typ)
	}
}

// Require makes it an error that the field id, below 64, was not read.
func (r *Reader) Require(id int16, name string) {
	if r.err == nil && r.seen>>id&1 == 0 {
		r.err = invalid("Required field %s is not set", name)
	}
}

// End ends the struct and returns the first error.
func (r *Reader) End() error {
	if r.err != nil {
		return r.err
	}
	return r.in.ReadStructEnd(r.ctx)
}

// expect says whether the current field is of type t; a field of another type is skipped.
func (r *Reader) expect(t thrift.TType) bool {
	if r.err != nil {
		return false
	}
	if r.typ != t {
		r.Skip()
		return false
	}
	r.seen |= 1 << r.id
	return true
}

func invalid(format string, args ...any) error {
	return thrift.NewTProtocolExceptionWithType(thrift.INVALID_DATA, fmt.Errorf(format, args...))
}

// Value is a type of fields that have one value.
type Value interface {
	bool | int8 | int16 | int32 | int64 | float64 | string | []byte
}

// Read reads a field.
func Read[T Value](r *Reader, dst *T) {
	if r.expect(typeOf(dst)) {
		r.err = read(r.ctx, r.in, dst)
	}
}

// ReadOptional reads a field that is nil where it is absent.
func ReadOptional[T Value](r *Reader, dst **T) {
	v := new(T)
	if r.expect(typeOf(v)) {
		r.err = read(r.ctx, r.in, v)
		*dst = v
	}
}

// ReadEnum reads a field that is an enumeration. Numbers without a name are kept.
func ReadEnum[T ~int32](r *Reader, dst *T) {
	n := int32(*dst)
	Read(r, &n)
	*dst = T(n)
}

// Struct is a pointer to a generated struct T.
type Struct[T any] interface {
	*T
	thrift.TStruct
}

// ReadStruct reads a field that is a struct.
func ReadStruct[T any, P Struct[T]](r *Reader, dst P) {
	if r.expect(thrift.STRUCT) {
		r.err = dst.Read(r.ctx, r.in)
	}
}

// ReadOptionalStruct reads a field that is a struct, and nil where it is absent.
func ReadOptionalStruct[T any, P Struct[T]](r *Reader, dst *P) {
	if r.expect(thrift.STRUCT) {
		*dst = new(T)
		r.err = (*dst).Read(r.ctx, r.in)
	}
}

// ReadStructs reads a field that is a list of structs.
func ReadStructs[T any, P Struct[T]](r *Reader, dst *[]T) {
	if r.expect(thrift.LIST) {
		*dst, r.err = readStructs[T, P](r.ctx, r.in)
	}
}

func readStructs[T any, P Struct[T]](ctx context.Context, in thrift.TProtocol) ([]T, error) {
	typ, n, err := in.ReadListBegin(ctx)
	if err != nil {
		return nil, err
	}
	if n > 0 && typ != thrift.STRUCT {
		return nil, invalid("a list of structs was expected, not of %v", typ)
	}
	list := make([]T, 0, min(n, preallocated))
	for range n {
		list = append(list, *new(T))
		if err := P(&list[len(list)-1]).Read(ctx, in); err != nil {
			return nil, err
		}
	}
	return list, in.ReadListEnd(ctx)
}

func read(ctx context.Context, in thrift.TProtocol, dst any) (err error) {
	switch p := dst.(type) {
	case *bool:
		*p, err = in.ReadBool(ctx)
	case *int8:
		*p, err = in.ReadByte(ctx)
	case *int16:
		*p, err = in.ReadI16(ctx)
	case *int32:
		*p, err = in.ReadI32(ctx)
	case *int64:
		*p, err = in.ReadI64(ctx)
	case *float64:
		*p, err = in.ReadDouble(ctx)
	case *string:
		*p, err = in.ReadString(ctx)
	case *[]byte:
		*p, err = in.ReadBinary(ctx)
		if *p == nil && err == nil {
			*p = []byte{}
		}
	}
	return err
}

// typeOf is the type on the wire of what p, a pointer to a Value, points to.
func typeOf(p any) thrift.TType {
	switch p.(type) {
	case *bool:
		return thrift.BOOL
	case *int8:
		return thrift.BYTE
	case *int16:
		return thrift.I16
	case *int32:
		return thrift.I32
	case *int64:
		return thrift.I64
	case *float64:
		return thrift.DOUBLE
	default:
		return thrift.STRING
	}
}
