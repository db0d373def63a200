package harness

import (
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
)

// RawCodec is a codec for gRPC clients that send encoded messages: requests are of type []byte,
// answers are discarded.
type RawCodec struct{}

var _ encoding.CodecV2 = RawCodec{}

// Name implements encoding.CodecV2.
func (RawCodec) Name() string { return "proto" }

// Unmarshal implements encoding.CodecV2.
func (RawCodec) Unmarshal(mem.BufferSlice, any) error { return nil }

// Marshal implements encoding.CodecV2.
func (RawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}
