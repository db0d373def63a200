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

// grpcServer implements the CollectorService and the SamplingManager, each under its own name and
// under the name that existing clients use. It receives spans as undecoded bytes.
type grpcServer struct {
	listener *server.GRPC
	receiver *receiver
}

func newGRPCServer(r *receiver, cfg server.GRPCConfig) (*grpcServer, error) {
	s := &grpcServer{receiver: r}
	var err error
	if s.listener, err = server.NewGRPC(r.set, "protocols.grpc", cfg); err != nil {
		return nil, err
	}
	desc := api_v2.CollectorService_ServiceDesc
	wire.Register(s.listener, &grpc.ServiceDesc{
		ServiceName: desc.ServiceName,
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "PostSpans", Handler: s.postSpans}},
		Metadata:    desc.Metadata,
	}, s)
	if r.sampling != nil {
		wire.Register(s.listener, &api_v2.SamplingManager_ServiceDesc, &samplingManager{provider: r.sampling})
	}
	s.listener.AddDescriptors(wire.Originals())
	return s, nil
}

func (s *grpcServer) postSpans(srv any, ctx context.Context, dec func(any) error, in grpc.UnaryServerInterceptor) (any, error) {
	var req server.Raw
	if err := dec(&req); err != nil {
		return nil, err
	}
	return in(ctx, &req, &grpc.UnaryServerInfo{Server: srv, FullMethod: api_v2.CollectorService_PostSpans_FullMethodName}, s.consume)
}

// consume passes on the spans of a request. It returns an empty PostSpansResponse.
func (s *grpcServer) consume(ctx context.Context, req any) (any, error) {
	b, err := s.receiver.translate(ctx, *req.(*server.Raw), postSpans)
	if err != nil {
		s.listener.CountRefused(server.ReasonOf(err))
		return nil, grpcStatus(err).Err()
	}
	if err := s.receiver.consume(ctx, b); err != nil {
		return nil, grpcStatus(err).Err()
	}
	return &server.Raw{}, nil
}

// grpcStatus returns the status of an error. For an undecodable message it is Internal, as clients
// of this service expect; see [pipeline.GRPCStatus] for other errors.
func grpcStatus(err error) *status.Status {
	var u *undecodable
	if errors.As(err, &u) {
		return status.New(codes.Internal, strings.ToValidUTF8(u.Error(), "\uFFFD"))
	}
	return pipeline.GRPCStatus(err)
}
