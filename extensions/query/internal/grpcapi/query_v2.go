package grpcapi

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/internal/wire/api_v2"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// chunkLimits bound the messages with spans in Jaeger's model. Existing clients accept messages of
// up to 4 MiB.
var chunkLimits = native.ChunkLimits{Spans: 10, Bytes: 1 << 20}

// The beginnings of error texts of the store.
const (
	failedSpans        = "failed to fetch spans from the backend"
	failedSearch       = "failed when searching for traces"
	failedArchive      = "failed to archive trace"
	failedServices     = "failed to fetch services"
	failedOperations   = "failed to fetch operations"
	failedDependencies = "failed to fetch dependencies"
)

var errNoQuery = status.Error(codes.InvalidArgument, "missing query")

// queryV2 is api_v2.QueryService, whose spans are in Jaeger's model.
type queryV2 struct {
	api_v2.UnimplementedQueryServiceServer
	calls Calls
}

type chunkStream = grpc.ServerStreamingServer[api_v2.SpansResponseChunk]

// GetTrace sends a trace.
func (q *queryV2) GetTrace(r *api_v2.GetTraceRequest, stream chunkStream) error {
	ref, err := refV2(r.TraceId, r.StartTime, r.EndTime)
	if err != nil {
		return err
	}
	n := 0
	err = q.calls.Run(stream.Context(), core.OpGetTrace, failedSpans, func(slot *core.Slot) (_ int, err error) {
		n, err = q.calls.sendTrace(slot, ref, r.RawTraces, native.NewChunks(chunkLimits, SendTo(stream)))
		return n, err
	})
	if err == nil && n == 0 {
		return status.Error(codes.NotFound, core.ErrTraceNotFound.Error())
	}
	return err
}

// ArchiveTrace copies a trace to the archive.
func (q *queryV2) ArchiveTrace(ctx context.Context, r *api_v2.ArchiveTraceRequest) (*api_v2.ArchiveTraceResponse, error) {
	ref, err := refV2(r.TraceId, r.StartTime, r.EndTime)
	if err != nil {
		return nil, err
	}
	err = q.calls.Run(ctx, core.OpArchiveTrace, failedArchive, func(slot *core.Slot) (int, error) { return slot.ArchiveTrace(ref) })
	if status.Code(err) == codes.NotFound {
		return nil, status.Error(codes.NotFound, "trace not found: trace not found")
	}
	return &api_v2.ArchiveTraceResponse{}, err
}

// FindTraces sends the traces that match a search.
func (q *queryV2) FindTraces(r *api_v2.FindTracesRequest, stream chunkStream) error {
	if r.Query == nil {
		return errNoQuery
	}
	return q.calls.Run(stream.Context(), core.OpFindTraces, failedSearch, func(slot *core.Slot) (int, error) {
		return q.calls.sendFound(slot, searchOf(r.Query, r.Query.Tags), native.NewChunks(chunkLimits, SendTo(stream)))
	})
}

// GetServices lists services.
func (q *queryV2) GetServices(ctx context.Context, _ *api_v2.GetServicesRequest) (*api_v2.GetServicesResponse, error) {
	out := &api_v2.GetServicesResponse{}
	err := q.calls.Run(ctx, core.OpGetServices, failedServices, func(slot *core.Slot) (_ int, err error) {
		out.Services, err = q.calls.services(slot)
		return len(out.Services), err
	})
	return out, err
}

// GetOperations lists operations.
func (q *queryV2) GetOperations(ctx context.Context, r *api_v2.GetOperationsRequest) (*api_v2.GetOperationsResponse, error) {
	var ops []tracestore.Operation
	err := q.calls.Run(ctx, core.OpGetOperations, failedOperations, func(slot *core.Slot) (_ int, err error) {
		ops, err = q.calls.operations(slot, r.Service, r.SpanKind)
		return len(ops), err
	})
	out := &api_v2.GetOperationsResponse{}
	for i, op := range ops {
		out.Operations = append(out.Operations, &api_v2.Operation{Name: op.Name, SpanKind: op.Kind})
		if i == 0 || op.Name != ops[i-1].Name { // they are sorted
			out.OperationNames = append(out.OperationNames, op.Name)
		}
	}
	return out, err
}

// GetDependencies returns the number of calls between services. Both times are required.
func (q *queryV2) GetDependencies(ctx context.Context, r *api_v2.GetDependenciesRequest) (*api_v2.GetDependenciesResponse, error) {
	from, to := timeOf(r.StartTime), timeOf(r.EndTime)
	if from.IsZero() || to.IsZero() {
		return nil, status.Error(codes.InvalidArgument, "StartTime and EndTime must be initialized.")
	}
	out := &api_v2.GetDependenciesResponse{}
	err := q.calls.Run(ctx, core.OpGetDependencies, failedDependencies, func(slot *core.Slot) (int, error) {
		links, err := q.calls.links(slot, from, to)
		for _, l := range links {
			out.Dependencies = append(out.Dependencies, &api_v2.DependencyLink{Parent: l.Parent, Child: l.Child, CallCount: l.Calls})
		}
		return len(links), err
	})
	return out, err
}
