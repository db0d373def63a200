package grpc

import (
	"context"
	"fmt"
	"io"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"

	"github.com/tracing-backend/tracing/internal/wire"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// chunks is a request that is encoded already, in pieces.
type chunks [][]byte

// codec is protobuf that lets encoded messages through.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{server.RawCodec()} }

// Marshal hands chunks on without a copy.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	parts, ok := v.(chunks)
	if !ok {
		return c.CodecV2.Marshal(v)
	}
	out := make(mem.BufferSlice, len(parts))
	for i, p := range parts {
		out[i] = mem.SliceBuffer(p)
	}
	return out, nil
}

// field calls services by the names that all servers know.
type field struct{ conn grpc.ClientConnInterface }

func fieldName(method string) string { return "/" + wire.Original(strings.TrimPrefix(method, "/")) }

// Invoke makes a call.
func (f field) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	return f.conn.Invoke(ctx, fieldName(method), args, reply, opts...)
}

// NewStream begins a streaming call.
func (f field) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return f.conn.NewStream(ctx, desc, fieldName(method), opts...)
}

// receive makes a call that is answered with a stream, and calls each with its messages, which each owns. An error of each ends the call.
func (f field) receive(ctx context.Context, method string, request any, each func(message []byte) error, opts ...grpc.CallOption) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := f.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method, opts...)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(request); err != nil && err != io.EOF { // of which the answer says more
		return err
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for {
		var m server.Raw
		if err := stream.RecvMsg(&m); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("stream error: %w", err)
		}
		if err := each(m); err != nil {
			return err
		}
	}
}
