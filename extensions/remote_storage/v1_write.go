package remotestorage

import (
	"context"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/internal/wire/storage_v1"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// writerDesc describes the service SpanWriterPlugin, which receives spans as bytes. Close is not
// implemented, as in other servers.
func (s *v1) writerDesc() *grpc.ServiceDesc {
	return &grpc.ServiceDesc{
		ServiceName: storage_v1.SpanWriterPlugin_ServiceDesc.ServiceName,
		HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{
			{MethodName: "WriteSpan", Handler: s.writeSpan},
			{MethodName: "Close", Handler: func(_ any, _ context.Context, dec func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
				if err := dec(&storage_v1.CloseWriterRequest{}); err != nil {
					return nil, err
				}
				return nil, status.Error(codes.Unimplemented, "span writer does not support graceful shutdown")
			}},
		},
		Metadata: storage_v1.SpanWriterPlugin_ServiceDesc.Metadata,
	}
}

func (s *v1) writeSpan(srv any, ctx context.Context, dec func(any) error, in grpc.UnaryServerInterceptor) (any, error) {
	var req server.Raw
	if err := dec(&req); err != nil {
		return nil, err
	}
	info := &grpc.UnaryServerInfo{Server: srv, FullMethod: storage_v1.SpanWriterPlugin_WriteSpan_FullMethodName}
	return in(ctx, &req, info, func(ctx context.Context, _ any) (any, error) {
		return &server.Raw{}, writeStatus(s.writers.native(ctx, s.toStore, req))
	})
}

func (s *v1) writeArchiveSpan(srv any, ctx context.Context, dec func(any) error, in grpc.UnaryServerInterceptor) (any, error) {
	var req server.Raw
	if err := dec(&req); err != nil {
		return nil, err
	}
	info := &grpc.UnaryServerInfo{Server: srv, FullMethod: storage_v1.ArchiveSpanWriterPlugin_WriteArchiveSpan_FullMethodName}
	return in(ctx, &req, info, func(ctx context.Context, _ any) (any, error) {
		if s.archive == nil {
			return nil, errNotImplemented
		}
		return &server.Raw{}, writeStatus(s.writers.native(ctx, s.toArchive, req))
	})
}

// writeSpanStream stores the spans of a stream as they arrive, and responds at the end of the
// stream after the store has accepted all of them. The first error ends it.
func (s *v1) writeSpanStream(_ any, stream grpc.ServerStream) error {
	in := newInbox()
	defer in.stop()
	defer context.AfterFunc(s.writers.stopping, func() { in.end(pipeline.ErrStopping) })()
	s.writers.streams.Go(func() { in.receive(stream) })
	for {
		requests := in.take()
		if len(requests) == 0 {
			break
		}
		if err := s.writers.native(stream.Context(), s.toStore, requests...); err != nil {
			return writeStatus(err)
		}
	}
	if in.ended != io.EOF {
		return writeStatus(in.ended)
	}
	return stream.SendMsg(&server.Raw{})
}
