package native

import (
	"context"
	"errors"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/internal/wire"
	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// grpcServer is the CollectorService, under its own name and under the one that clients in the field call. Its requests are taken as bytes.
// Beside it is the SamplingManager.
type grpcServer struct {
	*server.GRPC
	receiver *receiver
}

func newGRPCServer(r *receiver, cfg server.GRPCConfig) (*grpcServer, error) {
	s := &grpcServer{receiver: r}
	var err error
	if s.GRPC, err = server.NewGRPC(r.set, "protocols.grpc", cfg); err != nil {
		return nil, err
	}
	desc := api_v2.CollectorService_ServiceDesc
	wire.Register(s, &grpc.ServiceDesc{
		ServiceName: desc.ServiceName,
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "PostSpans", Handler: s.postSpans}},
		Metadata:    desc.Metadata,
	}, s)
	if r.sampling != nil {
		wire.Register(s, &api_v2.SamplingManager_ServiceDesc, &samplingManager{provider: r.sampling})
	}
	s.AddDescriptors(wire.Originals())
	return s, nil
}

func (s *grpcServer) postSpans(srv any, ctx context.Context, dec func(any) error, in grpc.UnaryServerInterceptor) (any, error) {
	var req server.Raw
	if err := dec(&req); err != nil {
		return nil, err
	}
	return in(ctx, &req, &grpc.UnaryServerInfo{Server: srv, FullMethod: api_v2.CollectorService_PostSpans_FullMethodName}, s.consume)
}

// consume answers with an empty PostSpansResponse.
func (s *grpcServer) consume(ctx context.Context, req any) (any, error) {
	b, err := s.receiver.translate(ctx, *req.(*server.Raw), postSpans)
	if err != nil {
		s.CountRefused(server.ReasonOf(err))
		return nil, grpcStatus(err).Err()
	}
	if err := s.receiver.consume(ctx, b); err != nil {
		return nil, grpcStatus(err).Err()
	}
	return &server.Raw{}, nil
}

// grpcStatus answers an undecodable message as gRPC itself does, which is what clients of this service know; all else is mapped as
// everywhere.
func grpcStatus(err error) *status.Status {
	var u *undecodable
	if errors.As(err, &u) {
		return status.New(codes.Internal, strings.ToValidUTF8(u.Error(), "\uFFFD"))
	}
	return pipeline.GRPCStatus(err)
}
