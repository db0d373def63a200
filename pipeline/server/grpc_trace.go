package server

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/pipeline/selftrace"
)

// metadataCarrier are the headers of a call for propagators of trace contexts.
type metadataCarrier metadata.MD

// Get implements propagation.TextMapCarrier.
func (c metadataCarrier) Get(key string) string {
	if values := metadata.MD(c).Get(key); len(values) > 0 {
		return values[0]
	}
	return ""
}

// Set implements propagation.TextMapCarrier.
func (c metadataCarrier) Set(key, value string) { metadata.MD(c).Set(key, value) }

// Keys implements propagation.TextMapCarrier.
func (c metadataCarrier) Keys() (keys []string) {
	for k := range c {
		keys = append(keys, k)
	}
	return keys
}

// traceStart returns the current time, or zero if self-tracing is off.
func (g *GRPC) traceStart() time.Time {
	if !g.set.Tracer.On() {
		return time.Time{}
	}
	return g.set.Env.Now()
}

// beginTrace starts the trace of a call if self-tracing is on. Calls of health and reflection
// services are not traced.
func (g *GRPC) beginTrace(ctx context.Context, method string) (context.Context, *selftrace.Request) {
	began := callOf(ctx).began
	if began.IsZero() || strings.HasPrefix(method, servicePrefix) {
		return ctx, nil
	}
	headers, _ := metadata.FromIncomingContext(ctx)
	service, name, _ := strings.Cut(method[1:], "/")
	return g.set.Tracer.Request(ctx, method[1:], began, metadataCarrier(headers), attribute.String("rpc.system", "grpc"),
		attribute.String("rpc.service", service), attribute.String("rpc.method", name))
}

// endCall ends the trace of a call. Codes for mistakes of the client do not count as failures of
// this process.
func endCall(trace *selftrace.Request, method string, err error) {
	st := status.Convert(err)
	failure := ""
	switch st.Code() {
	case codes.Unknown, codes.DeadlineExceeded, codes.Unimplemented, codes.Internal, codes.Unavailable, codes.DataLoss:
		failure = st.Message()
	}
	trace.End(method[1:], failure, attribute.Int("rpc.grpc.status_code", int(st.Code())))
}
