package grpcapi

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// timeOf returns a time, zero if it is absent. Existing clients send the year 1, which is the zero
// time, for absent times.
func timeOf(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

// queryParameters is implemented by the parameters of both versions.
type queryParameters interface {
	GetServiceName() string
	GetOperationName() string
	GetStartTimeMin() *timestamppb.Timestamp
	GetStartTimeMax() *timestamppb.Timestamp
	GetDurationMin() *durationpb.Duration
	GetDurationMax() *durationpb.Duration
	GetSearchDepth() int32
	GetRawTraces() bool
}

// searchOf returns the search for parameters. No parameter is required; the default limit is the
// same as in the HTTP API.
func searchOf(p queryParameters, tags map[string]string) *core.Search {
	s := &core.Search{
		Service: p.GetServiceName(), Operation: p.GetOperationName(), Tags: tags,
		From: timeOf(p.GetStartTimeMin()), To: timeOf(p.GetStartTimeMax()),
		MinDuration: p.GetDurationMin().AsDuration(), MaxDuration: p.GetDurationMax().AsDuration(),
		Limit: int(p.GetSearchDepth()), Raw: p.GetRawTraces(),
	}
	if s.Limit <= 0 {
		s.Limit = core.DefaultSearchLimit
	}
	return s
}

// refV2 returns a reference to a trace with an id of 16 or 8 bytes. For other lengths it returns
// the error that existing services return because they cannot decode the message.
func refV2(id []byte, from, to *timestamppb.Timestamp) (tracestore.TraceRef, error) {
	ref := tracestore.TraceRef{From: timeOf(from), To: timeOf(to)}
	switch len(id) {
	case 0:
	case len(ref.ID), len(ref.ID) / 2:
		copy(ref.ID[len(ref.ID)-len(id):], id)
	default:
		return ref, status.Error(codes.Internal, "grpc: error unmarshalling request: invalid length for TraceID")
	}
	if ref.ID.IsZero() {
		return ref, status.Error(codes.InvalidArgument, "uninitialized TraceID is not allowed")
	}
	return ref, nil
}

// refV3 returns a reference to a trace with an id in hex digits.
func refV3(id string, from, to *timestamppb.Timestamp) (tracestore.TraceRef, error) {
	if id == "" {
		return tracestore.TraceRef{}, status.Error(codes.InvalidArgument, "request has no trace_id")
	}
	parsed, err := core.ParseTraceID(id)
	if err != nil {
		return tracestore.TraceRef{}, status.Error(codes.Unknown, "malform trace ID: "+err.Error())
	}
	return tracestore.TraceRef{ID: parsed, From: timeOf(from), To: timeOf(to)}, nil
}
