package otlpclient

import (
	"fmt"

	"google.golang.org/grpc/mem"
)

// codec sends encoded requests in chunks and returns encoded responses.
type codec struct{}

// Name returns the name of the protobuf codec, because the wire format is the same.
func (codec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2 without copying the chunks.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	chunks, ok := v.([][]byte)
	if !ok {
		return nil, fmt.Errorf("BUG: cannot encode request of type %T", v)
	}
	out := make(mem.BufferSlice, len(chunks))
	for i, c := range chunks {
		out[i] = mem.SliceBuffer(c)
	}
	return out, nil
}

// Unmarshal implements encoding.CodecV2. It copies the response, because gRPC reuses its buffers.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	response, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("BUG: cannot decode response into type %T", v)
	}
	*response = data.Materialize()
	return nil
}
