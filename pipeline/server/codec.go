package server

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
)

// Raw is a gRPC message in its encoded form. A method whose request is a *Raw gets the bytes, which it owns, and one that answers with a
// *Raw sends them: for messages that are walked rather than built.
type Raw []byte

// codec is the codec of a [GRPC]: protobuf, with Raw let through.
type codec struct{ proto encoding.CodecV2 }

// RawCodec returns the protobuf codec that lets *[Raw] through, for clients; servers of this package have it.
func RawCodec() encoding.CodecV2 { return codec{encoding.GetCodecV2(proto.Name)} }

// Name is that of protobuf, which is what it is on the wire.
func (codec) Name() string { return proto.Name }

// Marshal encodes v.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if raw, ok := v.(*Raw); ok {
		return mem.BufferSlice{mem.SliceBuffer(*raw)}, nil
	}
	return c.proto.Marshal(v)
}

// Unmarshal decodes data, which grpc takes back afterwards. Its buffers are pooled and as many as the frames on the wire, so Raw is a copy:
// it has to be in one piece, and may be kept.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if raw, ok := v.(*Raw); ok {
		*raw = data.Materialize()
		return nil
	}
	if err := c.proto.Unmarshal(data, v); err != nil {
		return fmt.Errorf("not a message of this method: %w", err)
	}
	return nil
}
