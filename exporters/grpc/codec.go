package grpc

import (
	"context"
	"fmt"
	"io"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/tracing-backend/tracing/internal/wire"
	"github.com/tracing-backend/tracing/pipeline/client"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// originalNames is a connection that calls services by their original names, which all servers
// know.
type originalNames struct{ conn grpc.ClientConnInterface }

func originalName(method string) string { return "/" + wire.Original(strings.TrimPrefix(method, "/")) }

// Invoke makes a unary call.
func (o originalNames) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	return o.conn.Invoke(ctx, originalName(method), args, reply, opts...)
}

// NewStream starts a streaming call.
func (o originalNames) NewStream(
	ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	return o.conn.NewStream(ctx, desc, originalName(method), opts...)
}

// receive is like the function receive for this connection.
func (o originalNames) receive(ctx context.Context, method string, request any, each func(message []byte) error) (metadata.MD, error) {
	return receive(ctx, o, method, request, each)
}

// receive makes a call with a server stream and calls each with its messages, which each may
// retain. An error of each ends the call. receive returns the trailer if the server ended the call.
func receive(
	ctx context.Context, conn grpc.ClientConnInterface, method string, request any, each func(message []byte) error,
) (trailer metadata.MD, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := call(ctx, conn, method, request)
	if err != nil {
		return nil, err
	}
	for {
		var m server.Raw
		if err := stream.RecvMsg(&m); err == io.EOF {
			return stream.Trailer(), nil
		} else if err != nil {
			return stream.Trailer(), fmt.Errorf("stream error: %w", err)
		}
		if err := each(m); err != nil {
			return nil, err
		}
	}
}

// call makes a call with a server stream. The caller cancels ctx.
func call(ctx context.Context, conn grpc.ClientConnInterface, method string, request any) (grpc.ClientStream, error) {
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method)
	if err != nil {
		return nil, err
	}
	if err := stream.SendMsg(request); err != nil && err != io.EOF { // RecvMsg returns the error that caused io.EOF
		return nil, err
	}
	return stream, stream.CloseSend()
}

// withOption is a connection whose calls have an additional option.
type withOption struct {
	grpc.ClientConnInterface
	option grpc.CallOption
}

// Invoke makes a unary call.
func (w withOption) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	return w.ClientConnInterface.Invoke(ctx, method, args, reply, append(opts, w.option)...)
}

// NewStream starts a streaming call.
func (w withOption) NewStream(
	ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	return w.ClientConnInterface.NewStream(ctx, desc, method, append(opts, w.option)...)
}

// storeConn returns the connection for calls of the store service. The server uses the request's
// compression for the response. Responses are large, and gzip takes much longer than the store, so
// snappy replaces it.
func storeConn(conn *client.GRPC, compression string) grpc.ClientConnInterface {
	if compression != "gzip" {
		return conn
	}
	return withOption{conn, grpc.UseCompressor("snappy")}
}
