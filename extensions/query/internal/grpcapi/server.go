// Package grpcapi serves the gRPC query services: api_v2.QueryService, whose spans are in Jaeger's
// model, api_v3.QueryService, whose spans are OTLP, and api_v2.metrics.MetricsQueryService.
package grpcapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/spanmetrics"
	"github.com/tracing-backend/tracing/internal/wire"
	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	metricspb "github.com/tracing-backend/tracing/internal/wire/api_v2/metrics"
	"github.com/tracing-backend/tracing/internal/wire/api_v3"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// deliveryTimeouts is the maximum duration of a call as a multiple of query_timeout. Most of it is
// time for the client to read the response, during which the call holds a part of
// service.limits.query_memory.
const deliveryTimeouts = 10

// WarningTrailer is the trailer metadata that says what is missing in a response whose messages
// have no field for it.
const WarningTrailer = "tracing-warning"

// MaxMessageMiB is the default maximum size of a request.
const MaxMessageMiB = 1

// DefaultConfig returns the default settings of the listener. Queries are short, and decoded ones
// take several times their size, so messages are limited to MaxMessageMiB.
func DefaultConfig() server.GRPCConfig {
	c := server.DefaultGRPCConfig("localhost:16685")
	c.MaxRecvMsgSizeMiB = MaxMessageMiB
	return c
}

// New returns the listener of the query services. They are registered under their own names and
// under the names that existing clients use. opts are as in server.NewGRPC.
func New(set pipeline.Settings, cfg server.GRPCConfig, b *core.Backend, opts ...grpc.ServerOption) (*server.GRPC, error) {
	s, err := server.NewGRPC(set, "grpc", cfg, opts...)
	if err != nil {
		return nil, err
	}
	c := NewCalls(b)
	wire.Register(s, &api_v2.QueryService_ServiceDesc, &queryV2{calls: c})
	wire.Register(s, &api_v3.QueryService_ServiceDesc, &queryV3{calls: c})
	wire.Register(s, &metricspb.MetricsQueryService_ServiceDesc, &metricsQuery{calls: c})
	s.AddDescriptors(wire.Originals())
	return s, nil
}

// Calls runs the queries of services.
type Calls struct{ backend *core.Backend }

// NewCalls returns the Calls of a backend.
func NewCalls(b *core.Backend) Calls { return Calls{b} }

// Run admits a query and measures it. answer returns the number of results. failure is the
// beginning of the text of store errors.
func (c Calls) Run(ctx context.Context, op core.Operation, failure string, answer func(*core.Slot) (int, error)) error {
	slot, err := c.backend.Admit(ctx, op)
	if err != nil {
		return c.status(ctx, failure, err)
	}
	defer slot.Release()
	timeout := time.AfterFunc(deliveryTimeouts*c.backend.Limits().Timeout, func() { server.EndCall(ctx) })
	defer timeout.Stop()
	return c.status(ctx, failure, slot.Measure(func() (int, error) { return answer(slot) }))
}

// status returns the gRPC status for an error. It logs errors that are neither timeouts nor
// temporary.
func (c Calls) status(ctx context.Context, failure string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil: // the client disconnected
		return status.FromContextError(ctx.Err()).Err()
	case errors.Is(err, core.ErrUndelivered):
		return status.Error(codes.Canceled, err.Error())
	case errors.Is(err, core.ErrTraceNotFound):
		return status.Error(codes.NotFound, err.Error())
	case errors.Is(err, core.ErrTraceDamaged): // logged by the store
		return status.Error(codes.DataLoss, err.Error())
	case errors.Is(err, core.ErrNoDependencies), errors.Is(err, spanmetrics.ErrUnsupported),
		errors.Is(err, tracestore.ErrUnsupported):
		return status.Error(codes.Unimplemented, err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, c.backend.TimeoutText(err))
	case core.IsBusy(err), core.IsInvalid(err), pipeline.IsTemporary(err):
		return pipeline.GRPCStatus(err).Err()
	}
	c.backend.Logger().Error("gRPC handler, Internal", zap.String("doing", failure), zap.Error(err))
	return status.Error(codes.Internal, fmt.Sprintf("%s: %v", failure, err))
}

// SendTo returns a function that sends encoded messages. It does not keep them.
func SendTo(stream grpc.ServerStream) func(message []byte) error {
	return func(message []byte) error {
		raw := server.Raw(bytes.Clone(message)) // gRPC may hold it after SendMsg has returned
		return core.Undelivered(stream.SendMsg(&raw))
	}
}

// Warn sets the trailer that says what is missing in a response, unless text is empty.
func Warn(ctx context.Context, text string) {
	if text != "" {
		// It fails only after the end of the call.
		_ = grpc.SetTrailer(ctx, metadata.Pairs(WarningTrailer, text))
	}
}
