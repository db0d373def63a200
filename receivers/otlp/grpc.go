package otlp

import (
	"context"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
)

const (
	traceService    = "opentelemetry.proto.collector.trace.v1.TraceService"
	exportMethod    = "/" + traceService + "/Export"
	collectorPrefix = "/opentelemetry.proto.collector."
)

// reasonSignal is the reason for refusing requests of unknown signals, such as profiles.
const reasonSignal = "signal"

// grpcServer implements the TraceService. It receives requests as undecoded bytes.
type grpcServer struct {
	listener *server.GRPC
	receiver *receiver
}

func newGRPCServer(r *receiver, cfg server.GRPCConfig) (*grpcServer, error) {
	s := &grpcServer{receiver: r}
	var err error
	s.listener, err = server.NewGRPC(r.set, "protocols.grpc", cfg, grpc.UnknownServiceHandler(s.unknown))
	if err != nil {
		return nil, err
	}
	s.listener.RegisterService(&grpc.ServiceDesc{
		ServiceName: traceService,
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "Export", Handler: s.export}},
		Metadata:    "opentelemetry/proto/collector/trace/v1/trace_service.proto",
	}, s)
	s.registerOthers()
	return s, nil
}

func (s *grpcServer) export(srv any, ctx context.Context, dec func(any) error, in grpc.UnaryServerInterceptor) (any, error) {
	var req server.Raw
	if err := dec(&req); err != nil {
		return nil, err
	}
	return in(ctx, &req, &grpc.UnaryServerInfo{Server: srv, FullMethod: exportMethod}, s.consume)
}

func (s *grpcServer) consume(ctx context.Context, req any) (any, error) {
	b, err := otlpdata.FromOTLP(*req.(*server.Raw), s.receiver.meta(ctx, "grpc"), s.receiver.limits)
	if err != nil {
		s.listener.CountRefused(server.ReasonOf(err))
		return nil, pipeline.GRPCStatus(pipeline.Permanent(err)).Err()
	}
	resp, err := s.receiver.consume(ctx, b, s.listener.CountRefused)
	if err != nil {
		return nil, pipeline.GRPCStatus(err).Err()
	}
	raw, err := resp.MarshalProto()
	return (*server.Raw)(&raw), err
}

// unknown responds to calls of other services and methods.
func (s *grpcServer) unknown(_ any, ss grpc.ServerStream) error {
	s.listener.CountRefused(reasonSignal)
	method, _ := grpc.MethodFromServerStream(ss)
	if strings.HasPrefix(method, collectorPrefix) && !strings.HasPrefix(method, "/"+traceService+"/") {
		return status.Errorf(codes.Unimplemented, "%s: only traces are accepted here", method)
	}
	return status.Errorf(codes.Unimplemented, "unknown method %s", method)
}
