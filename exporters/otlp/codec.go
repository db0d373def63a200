package otlp

import (
	"fmt"

	"google.golang.org/grpc/mem"
)

// codec sends a request that is encoded already, in segments, and takes the answer as bytes.
type codec struct{}

// Name is that of protobuf, which is what it is on the wire.
func (codec) Name() string { return "proto" }

// Marshal hands the segments on without a copy.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	segments, ok := v.([][]byte)
	if !ok {
		return nil, fmt.Errorf("BUG: request of type %T", v)
	}
	out := make(mem.BufferSlice, len(segments))
	for i, s := range segments {
		out[i] = mem.SliceBuffer(s)
	}
	return out, nil
}

// Unmarshal copies the answer, whose buffers gRPC takes back.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	answer, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("BUG: answer of type %T", v)
	}
	*answer = data.Materialize()
	return nil
}
