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
	collectorPrefix = "/opentelemetry.proto.collector."
)

// reasonSignal is the reason for refusing requests of unknown signals, such as profiles.
const reasonSignal = "signal"

// grpcServer implements the services of all signals. It receives requests as undecoded bytes.
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
	s.register()
	return s, nil
}

func (s *grpcServer) export(ctx context.Context, signal *signal, request []byte) (any, error) {
	if !s.receiver.takes(signal) {
		return s.reject(signal, request)
	}
	b, err := otlpdata.FromOTLP(request, s.receiver.meta(ctx, signal.kind, "grpc"), s.receiver.limits)
	if err != nil {
		s.listener.CountRefused(server.ReasonOf(err))
		return nil, pipeline.GRPCStatus(pipeline.Permanent(err)).Err()
	}
	rejected, message, err := s.receiver.consume(ctx, b, s.listener.CountRefused)
	if err != nil {
		return nil, pipeline.GRPCStatus(err).Err()
	}
	raw, err := partialSuccess(rejected, message).MarshalProto()
	return (*server.Raw)(&raw), err
}

// unknown responds to calls of other services and methods.
func (s *grpcServer) unknown(_ any, ss grpc.ServerStream) error {
	s.listener.CountRefused(reasonSignal)
	method, _ := grpc.MethodFromServerStream(ss)
	if strings.HasPrefix(method, collectorPrefix) && !strings.HasPrefix(method, "/"+traceService+"/") {
		return status.Errorf(codes.Unimplemented, "%s: only traces and logs are accepted here", method)
	}
	return status.Errorf(codes.Unimplemented, "unknown method %s", method)
}
