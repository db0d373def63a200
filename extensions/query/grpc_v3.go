package query

import (
	"context"
	"encoding/hex"
	"math"
	"slices"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/internal/translate/otlpchunks"
	"github.com/tracing-backend/tracing/internal/wire/api_v3"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	// maxTracesData is about the size above which a trace comes in several messages. Existing clients take messages of up to 4 MiB.
	maxTracesData = 1 << 20
	// maxSummaries is how many summaries come in one message.
	maxSummaries = 100
)

// queryV3 is api_v3.QueryService: traces as OTLP.
type queryV3 struct {
	api_v3.UnimplementedQueryServiceServer
	grpcQuery
}

type tracesStream = grpc.ServerStreamingServer[tracepb.TracesData]

// GetTrace sends a trace, and nothing where there is none.
func (q *queryV3) GetTrace(r *api_v3.GetTraceRequest, stream tracesStream) error {
	ref, err := refV3(r.TraceId, r.StartTime, r.EndTime)
	if err != nil {
		return err
	}
	return q.ask(stream.Context(), opGetTrace, fetchingSpans, func(t *turn) (int, error) {
		return q.writeTrace(t, ref, r.RawTraces, otlpchunks.NewWriter(maxTracesData, sendTo(stream)))
	})
}

// FindTraces sends the traces that a search finds.
func (q *queryV3) FindTraces(r *api_v3.FindTracesRequest, stream tracesStream) error {
	s, err := searchV3(r.Query)
	if err != nil {
		return err
	}
	return q.ask(stream.Context(), opFindTraces, searching, func(t *turn) (int, error) {
		return q.writeFound(t, s, otlpchunks.NewWriter(maxTracesData, sendTo(stream)))
	})
}

// searchV3 returns the search that parameters ask for. What would be ignored is refused: it would find more than was asked for.
func searchV3(p *api_v3.TraceQueryParameters) (*search, error) {
	if p == nil {
		return nil, errNoQuery
	}
	s := searchOf(p, p.Attributes)
	switch {
	case s.from.IsZero() || s.to.IsZero():
		return nil, status.Error(codes.InvalidArgument, "start time min and max are required parameters")
	case p.Filter != nil:
		return nil, status.Error(codes.InvalidArgument, "query.filter is not supported; use the other parameters")
	case p.Pagination != nil:
		return nil, status.Error(codes.InvalidArgument, "query.pagination is not supported; use search_depth")
	}
	return s, nil
}

// FindTraceSummaries sends what lists of the traces show.
func (q *queryV3) FindTraceSummaries(r *api_v3.FindTraceSummariesRequest, stream grpc.ServerStreamingServer[api_v3.FindTraceSummariesResponse]) error {
	s, err := searchV3(r.Query)
	if err != nil {
		return err
	}
	return q.ask(stream.Context(), opFindSummaries, searching, func(t *turn) (int, error) {
		found, err := q.foundSummaries(t, s)
		if err != nil {
			return 0, err
		}
		for some := range slices.Chunk(found, maxSummaries) {
			message := &api_v3.FindTraceSummariesResponse{}
			for _, s := range some {
				message.Summaries = append(message.Summaries, summaryMessage(s))
			}
			if err := delivered(stream.Send(message)); err != nil {
				return 0, err
			}
		}
		return len(found), nil
	})
}

func summaryMessage(s *tracestore.Summary) *api_v3.TraceSummary {
	out := &api_v3.TraceSummary{
		TraceId: hex.EncodeToString(s.ID[:]), RootServiceName: asText(s.RootService), RootOperationName: asText(s.RootName),
		MinStartTimeUnixNano: s.Start, MaxEndTimeUnixNano: s.End,
		SpanCount: count(s.Spans), ErrorSpanCount: count(s.Errors), OrphanSpanCount: count(s.Orphans),
	}
	for _, svc := range s.Services {
		out.Services = append(out.Services, &api_v3.ServiceSummary{
			Name: asText(svc.Name), SpanCount: count(svc.Spans), ErrorSpanCount: count(svc.Errors),
		})
	}
	return out
}

func count(n int) int32 { return int32(min(n, math.MaxInt32)) }

// GetServices lists services.
func (q *queryV3) GetServices(ctx context.Context, _ *api_v3.GetServicesRequest) (*api_v3.GetServicesResponse, error) {
	out := &api_v3.GetServicesResponse{}
	err := q.ask(ctx, opGetServices, fetchingServices, func(t *turn) (_ int, err error) {
		out.Services, err = q.storedServices(t)
		return len(out.Services), err
	})
	return out, err
}

// GetOperations lists operations.
func (q *queryV3) GetOperations(ctx context.Context, r *api_v3.GetOperationsRequest) (*api_v3.GetOperationsResponse, error) {
	out := &api_v3.GetOperationsResponse{}
	err := q.ask(ctx, opGetOperations, fetchingOperations, func(t *turn) (int, error) {
		ops, err := q.storedOperations(t, r.Service, r.SpanKind)
		for _, op := range ops {
			out.Operations = append(out.Operations, &api_v3.Operation{Name: op.Name, SpanKind: op.Kind})
		}
		return len(ops), err
	})
	return out, err
}

// GetDependencies counts calls between services.
func (q *queryV3) GetDependencies(ctx context.Context, r *api_v3.GetDependenciesRequest) (*api_v3.DependenciesResponse, error) {
	from, to := timeOf(r.StartTime), timeOf(r.EndTime)
	switch {
	case from.IsZero():
		return nil, status.Error(codes.InvalidArgument, "start_time is required")
	case to.IsZero():
		return nil, status.Error(codes.InvalidArgument, "end_time is required")
	case !to.After(from):
		return nil, status.Error(codes.InvalidArgument, "end_time must be after start_time")
	}
	out := &api_v3.DependenciesResponse{}
	err := q.ask(ctx, opGetDependencies, fetchingDependencies, func(t *turn) (int, error) {
		links, err := q.storedLinks(t, from, to)
		for _, l := range links {
			out.Dependencies = append(out.Dependencies, &api_v3.Dependency{Parent: l.parent, Child: l.child, CallCount: l.calls})
		}
		return len(links), err
	})
	return out, err
}
