package grpcapi

import (
	"context"
	"encoding/hex"
	"math"
	"slices"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/internal/translate/otlpchunks"
	"github.com/tracing-backend/tracing/internal/translate/queryfilter"
	"github.com/tracing-backend/tracing/internal/wire/api_v3"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	// maxTracesData is the approximate size above which a trace is sent in several messages.
	// Existing clients accept messages of up to 4 MiB.
	maxTracesData = 1 << 20
	// maxSummaries is the maximum number of summaries per message.
	maxSummaries = 100
)

// queryV3 is api_v3.QueryService, whose spans are OTLP.
type queryV3 struct {
	api_v3.UnimplementedQueryServiceServer
	calls Calls
}

type (
	tracesStream    = grpc.ServerStreamingServer[tracepb.TracesData]
	summariesStream = grpc.ServerStreamingServer[api_v3.FindTraceSummariesResponse]
)

// GetTrace sends a trace, or no message if it does not exist.
func (q *queryV3) GetTrace(r *api_v3.GetTraceRequest, stream tracesStream) error {
	ref, err := refV3(r.TraceId, r.StartTime, r.EndTime)
	if err != nil {
		return err
	}
	return q.calls.Run(stream.Context(), core.OpGetTrace, failedSpans, func(slot *core.Slot) (int, error) {
		return q.calls.sendTrace(slot, ref, r.RawTraces, otlpchunks.NewWriter(maxTracesData, SendTo(stream)))
	})
}

// FindTraces sends the traces that match a search.
func (q *queryV3) FindTraces(r *api_v3.FindTracesRequest, stream tracesStream) error {
	s, err := q.search(stream.Context(), r.Query)
	if err != nil {
		return err
	}
	return q.calls.Run(stream.Context(), core.OpFindTraces, failedSearch, func(slot *core.Slot) (int, error) {
		return q.calls.sendFound(slot, s, otlpchunks.NewWriter(maxTracesData, SendTo(stream)))
	})
}

// search returns the search for parameters.
func (q *queryV3) search(ctx context.Context, p *api_v3.TraceQueryParameters) (*core.Search, error) {
	if p == nil {
		return nil, errNoQuery
	}
	s := searchOf(p, p.Attributes)
	if s.From.IsZero() || s.To.IsZero() {
		return nil, status.Error(codes.InvalidArgument, "start time min and max are required parameters")
	}
	if p.Filter != nil {
		where, err := queryfilter.Parse(p.Filter)
		if err == nil {
			text, _ := proto.MarshalOptions{Deterministic: true}.Marshal(p.Filter) // cannot fail: it was decoded
			err = s.SetFilter(q.calls.backend.Language(ctx), where, string(text))
		}
		if err != nil {
			return nil, status.Error(codes.InvalidArgument, "query.filter: "+err.Error())
		}
	}
	if page := p.Pagination; page != nil {
		if err := s.SetPage(int(page.PageSize), page.PageToken, server.Tenant(ctx)); err != nil {
			return nil, status.Error(codes.InvalidArgument, "query.pagination: "+err.Error())
		}
	}
	return s, nil
}

// FindTraceSummaries sends summaries of the traces that match a search.
func (q *queryV3) FindTraceSummaries(r *api_v3.FindTraceSummariesRequest, stream summariesStream) error {
	s, err := q.search(stream.Context(), r.Query)
	if err != nil {
		return err
	}
	return q.calls.Run(stream.Context(), core.OpFindSummaries, failedSearch, func(slot *core.Slot) (int, error) {
		found, next, err := q.calls.summaries(slot, s)
		if err != nil {
			return 0, err
		}
		parts := slices.Collect(slices.Chunk(found, maxSummaries))
		if len(parts) == 0 && next != "" {
			parts = append(parts, nil)
		}
		for i, some := range parts {
			message := &api_v3.FindTraceSummariesResponse{}
			for _, s := range some {
				message.Summaries = append(message.Summaries, summaryMessage(s))
			}
			if i == len(parts)-1 {
				message.NextPageToken = next
			}
			if err := core.Undelivered(stream.Send(message)); err != nil {
				return 0, err
			}
		}
		return len(found), nil
	})
}

func summaryMessage(s *tracestore.Summary) *api_v3.TraceSummary {
	out := &api_v3.TraceSummary{
		TraceId: hex.EncodeToString(s.ID[:]), RootServiceName: validText(s.RootService), RootOperationName: validText(s.RootName),
		MinStartTimeUnixNano: s.Start, MaxEndTimeUnixNano: s.End,
		SpanCount: count(s.Spans), ErrorSpanCount: count(s.Errors), OrphanSpanCount: count(s.Orphans),
	}
	for _, svc := range s.Services {
		out.Services = append(out.Services, &api_v3.ServiceSummary{
			Name: validText(svc.Name), SpanCount: count(svc.Spans), ErrorSpanCount: count(svc.Errors),
		})
	}
	return out
}

func count(n int) int32 { return int32(min(n, math.MaxInt32)) }

// GetServices lists services.
func (q *queryV3) GetServices(ctx context.Context, _ *api_v3.GetServicesRequest) (*api_v3.GetServicesResponse, error) {
	out := &api_v3.GetServicesResponse{}
	err := q.calls.Run(ctx, core.OpGetServices, failedServices, func(slot *core.Slot) (_ int, err error) {
		out.Services, err = q.calls.services(slot)
		return len(out.Services), err
	})
	return out, err
}

// GetOperations lists operations.
func (q *queryV3) GetOperations(ctx context.Context, r *api_v3.GetOperationsRequest) (*api_v3.GetOperationsResponse, error) {
	out := &api_v3.GetOperationsResponse{}
	err := q.calls.Run(ctx, core.OpGetOperations, failedOperations, func(slot *core.Slot) (int, error) {
		ops, err := q.calls.operations(slot, r.Service, r.SpanKind)
		for _, op := range ops {
			out.Operations = append(out.Operations, &api_v3.Operation{Name: op.Name, SpanKind: op.Kind})
		}
		return len(ops), err
	})
	return out, err
}

// GetDependencies returns the number of calls between services.
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
	err := q.calls.Run(ctx, core.OpGetDependencies, failedDependencies, func(slot *core.Slot) (int, error) {
		links, err := q.calls.links(slot, from, to)
		for _, l := range links {
			out.Dependencies = append(out.Dependencies, &api_v3.Dependency{Parent: l.Parent, Child: l.Child, CallCount: l.Calls})
		}
		return len(links), err
	})
	return out, err
}
