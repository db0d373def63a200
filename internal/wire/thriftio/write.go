package thriftio

import (
	"context"

	"github.com/apache/thrift/lib/go/thrift"
)

// Writer writes the fields of one struct. After an error its methods do nothing; End returns it.
type Writer struct {
	ctx context.Context
	out thrift.TProtocol
	err error
}

// NewWriter begins a struct.
func NewWriter(ctx context.Context, out thrift.TProtocol, name string) *Writer {
	return &Writer{ctx: ctx, out: out, err: out.WriteStructBegin(ctx, name)}
}

// End ends the struct and returns the first error.
func (w *Writer) End() error {
	if w.err == nil {
		w.err = w.out.WriteFieldStop(w.ctx)
	}
	if w.err == nil {
		w.err = w.out.WriteStructEnd(w.ctx)
	}
	return w.err
}

func (w *Writer) field(id int16, name string, typ thrift.TType, value func() error) {
	if w.err == nil {
		w.err = w.out.WriteFieldBegin(w.ctx, name, typ, id)
	}
	if w.err == nil {
		w.err = value()
	}
	if w.err == nil {
		w.err = w.out.WriteFieldEnd(w.ctx)
	}
}

// Write writes a field.
func Write[T Value](w *Writer, id int16, name string, v T) {
	w.field(id, name, typeOf(&v), func() error { return write(w.ctx, w.out, v) })
}

// WriteOptional writes a field unless it is nil.
func WriteOptional[T Value](w *Writer, id int16, name string, v *T) {
	if v != nil {
		Write(w, id, name, *v)
	}
}

// WriteStruct writes a field that is a struct.
func WriteStruct(w *Writer, id int16, name string, v thrift.TStruct) {
	w.field(id, name, thrift.STRUCT, func() error { return v.Write(w.ctx, w.out) })
}

// WriteStructs writes a field that is a list of structs.
func WriteStructs[T any, P Struct[T]](w *Writer, id int16, name string, list []T) {
	w.field(id, name, thrift.LIST, func() error {
		if err := w.out.WriteListBegin(w.ctx, thrift.STRUCT, len(list)); err != nil {
			return err
		}
		for i := range list {
			if err := P(&list[i]).Write(w.ctx, w.out); err != nil {
				return err
			}
		}
		return w.out.WriteListEnd(w.ctx)
	})
}

func write(ctx context.Context, out thrift.TProtocol, v any) error {
	switch v := v.(type) {
	case bool:
		return out.WriteBool(ctx, v)
	case int8:
		return out.WriteByte(ctx, v)
	case int16:
		return out.WriteI16(ctx, v)
	case int32:
		return out.WriteI32(ctx, v)
	case int64:
		return out.WriteI64(ctx, v)
	case float64:
		return out.WriteDouble(ctx, v)
	case string:
		return out.WriteString(ctx, v)
	case []byte:
		return out.WriteBinary(ctx, v)
	}
	return nil
}
