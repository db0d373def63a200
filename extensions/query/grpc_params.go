package query

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// timeOf returns the time that a client means. Existing clients send the year 1 for a time that they leave out.
func timeOf(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}

// queryParameters is what both versions of the service call a search.
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

// searchOf returns the search that parameters ask for. It need not name a service, and finds as many traces as one over HTTP when it does not
// say how many.
func searchOf(p queryParameters, tags map[string]string) *search {
	s := &search{
		service: p.GetServiceName(), operation: p.GetOperationName(), tags: tags,
		from: timeOf(p.GetStartTimeMin()), to: timeOf(p.GetStartTimeMax()),
		minDuration: p.GetDurationMin().AsDuration(), maxDuration: p.GetDurationMax().AsDuration(),
		limit: int(p.GetSearchDepth()), raw: p.GetRawTraces(),
	}
	if s.limit <= 0 {
		s.limit = defaultLimit
	}
	return s
}

// refV2 reads a trace id of 16 bytes, or 8. One of another length is a message that existing services could not decode, and answered as.
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

// refV3 reads a trace id of hex digits.
func refV3(id string, from, to *timestamppb.Timestamp) (tracestore.TraceRef, error) {
	parsed, err := parseTraceID(id)
	if err != nil {
		return tracestore.TraceRef{}, status.Error(codes.Unknown, "malform trace ID: "+err.Error())
	}
	return tracestore.TraceRef{ID: parsed, From: timeOf(from), To: timeOf(to)}, nil
}
