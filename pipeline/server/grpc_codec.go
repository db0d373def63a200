package server

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// Raw is an encoded gRPC message. A method with a request of type *Raw receives the undecoded bytes
// and owns them. A method that returns a *Raw sends its bytes.
type Raw []byte

// Pieces is an encoded gRPC message in several pieces, which must not be modified after the message
// was sent.
type Pieces [][]byte

// codec is the protobuf codec, except that it does not decode or encode [Raw] and [Pieces].
type codec struct{ proto encoding.CodecV2 }

// RawCodec returns the protobuf codec with support for *[Raw] and [Pieces], for use by clients. A
// [GRPC] server uses it already.
func RawCodec() encoding.CodecV2 { return codec{encoding.GetCodecV2(proto.Name)} }

// Name returns the name of the protobuf codec, because the wire format is the same.
func (codec) Name() string { return proto.Name }

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	switch v := v.(type) {
	case *Raw:
		return mem.BufferSlice{mem.SliceBuffer(*v)}, nil
	case Pieces:
		out := make(mem.BufferSlice, len(v))
		for i, p := range v {
			out[i] = mem.SliceBuffer(p)
		}
		return out, nil
	}
	return c.proto.Marshal(v)
}

// Unmarshal implements encoding.CodecV2. It copies data into a Raw: grpc reuses the buffers of
// data, which hold one frame each, while a Raw is contiguous and owned by the handler.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if raw, ok := v.(*Raw); ok {
		*raw = data.Materialize()
		return nil
	}
	if err := c.proto.Unmarshal(data, v); err != nil {
		return fmt.Errorf("cannot decode request: %w", err)
	}
	return nil
}
