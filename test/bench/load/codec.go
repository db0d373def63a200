package load

import (
	"fmt"

	"google.golang.org/grpc/mem"
)

// rawCodec passes encoded messages through, so that the sender uses little CPU time compared with
// the measured server.
type rawCodec struct{}

// Marshal takes a []byte, which must not change until the call has ended.
func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("rawCodec: cannot marshal %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(b)}, nil
}

// Unmarshal takes a *[]byte.
func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("rawCodec: cannot unmarshal into %T", v)
	}
	*b = data.Materialize()
	return nil
}

// Name is the content type that servers expect.
func (rawCodec) Name() string { return "proto" }
