package query

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

	"github.com/tracing-backend/tracing/internal/wire"
	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	metricspb "github.com/tracing-backend/tracing/internal/wire/api_v2/metrics"
	"github.com/tracing-backend/tracing/internal/wire/api_v3"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
)

// deliveryTimeouts times query_timeout is how long a call may last, most of which is the client's time to take the answer: it holds a part of
// max_answer_memory for as long.
const deliveryTimeouts = 10

// warningTrailer is the metadata behind an answer that tells what is missing in it, where the messages have no place to say so.
const warningTrailer = "tracing-warning"

// grpcQuery is what both versions of the query service do alike.
type grpcQuery struct{ *backend }

// defaultGRPC returns the defaults of the listener. Queries are small, and decoded they are many times larger.
func defaultGRPC() server.GRPCConfig {
	c := server.DefaultGRPCConfig("localhost:16685")
	c.MaxRecvMsgSizeMiB = 1
	return c
}

// newGRPC makes the listener of the query services, under their own names and under those that existing clients call.
func newGRPC(set pipeline.Settings, cfg server.GRPCConfig, b *backend) (*server.GRPC, error) {
	s, err := server.NewGRPC(set, "grpc", cfg)
	if err != nil {
		return nil, err
	}
	q := grpcQuery{b}
	wire.Register(s, &api_v2.QueryService_ServiceDesc, &queryV2{grpcQuery: q})
	wire.Register(s, &api_v3.QueryService_ServiceDesc, &queryV3{grpcQuery: q})
	wire.Register(s, &metricspb.MetricsQueryService_ServiceDesc, &queryRates{grpcQuery: q})
	s.AddDescriptors(wire.Originals())
	return s, nil
}

// ask lets a query in and measures it. answer returns the number of results. doing says what was tried, in the words that clients know.
func (q grpcQuery) ask(ctx context.Context, op operation, doing string, answer func(*turn) (int, error)) error {
	t, err := q.admit(ctx)
	if err != nil {
		return q.failure(ctx, doing, err)
	}
	defer t.done()
	giveUp := time.AfterFunc(deliveryTimeouts*q.limits.timeout, func() { server.EndCall(ctx) })
	defer giveUp.Stop()
	return q.failure(ctx, doing, q.measure(op, func() (int, error) { return answer(t) }))
}

// failure returns the status for an error, and logs it when it is not about time or load.
func (q grpcQuery) failure(ctx context.Context, doing string, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil: // nobody is listening
		return status.FromContextError(ctx.Err()).Err()
	case errors.Is(err, errUndelivered):
		return status.Error(codes.Canceled, err.Error())
	case errors.Is(err, errTraceNotFound):
		return status.Error(codes.NotFound, err.Error())
	case errors.Is(err, errNoDependencies), errors.Is(err, errNoRates):
		return status.Error(codes.Unimplemented, err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, fmt.Sprintf("the store did not finish within query_timeout (%s); ask for less", q.limits.timeout))
	case errors.Is(err, errBusy):
		return pipeline.GRPCStatus(err).Err()
	}
	q.logger.Error("gRPC handler, Internal", zap.String("doing", doing), zap.Error(err))
	return status.Error(codes.Internal, doing+": "+err.Error())
}

// sendTo returns a function that sends encoded messages, of which it keeps none.
func sendTo(stream grpc.ServerStream) func(message []byte) error {
	return func(message []byte) error {
		raw := server.Raw(bytes.Clone(message)) // gRPC may hold it after SendMsg has returned
		return delivered(stream.SendMsg(&raw))
	}
}

// delivered marks an error of sending to a client.
func delivered(err error) error {
	if err != nil {
		return fmt.Errorf("%w: %w", errUndelivered, err)
	}
	return nil
}

// warn tells behind the answer of a call what is missing in it; "" is nothing.
func warn(ctx context.Context, what string) {
	if what != "" {
		// Only a call that has ended refuses it.
		_ = grpc.SetTrailer(ctx, metadata.Pairs(warningTrailer, what))
	}
}
