package remotestorage

import (
	"context"
	"errors"
	"math"

	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tracing-backend/tracing/internal/translate/otlpchunks"
	"github.com/tracing-backend/tracing/internal/translate/queryfilter"
	"github.com/tracing-backend/tracing/internal/translate/remotestore"
	"github.com/tracing-backend/tracing/internal/wire"
	"github.com/tracing-backend/tracing/internal/wire/storage_v2"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	traceService = "opentelemetry.proto.collector.trace.v1.TraceService"
	exportMethod = "/" + traceService + "/Export"
	// traceWriter has no methods. Clients use its name with the health service.
	traceWriter = "tracing.storage.v2.TraceWriter"
)

// v2 serves a store with remote storage v2 (OTLP).
type v2 struct {
	storage_v2.UnimplementedTraceReaderServer
	storage_v2.UnimplementedDependencyReaderServer
	storage_v2.UnimplementedCapabilitiesServer
	*readers
	writers *writers
	store   Store
	toStore pipeline.Consumer // writes to it and counts the spans
}

func registerV2(srv *server.GRPC, r *readers, w *writers, store Store) {
	s := &v2{readers: r, writers: w, store: store, toStore: w.set.Counted(store)}
	wire.Register(srv, &storage_v2.TraceReader_ServiceDesc, s)
	wire.Register(srv, &storage_v2.DependencyReader_ServiceDesc, s)
	wire.Register(srv, &storage_v2.Capabilities_ServiceDesc, s)
	wire.Register(srv, &grpc.ServiceDesc{ServiceName: traceWriter, HandlerType: (*any)(nil)}, s)
	srv.RegisterService(&grpc.ServiceDesc{
		ServiceName: traceService,
		HandlerType: (*any)(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "Export", Handler: s.export}},
		Metadata:    "opentelemetry/proto/collector/trace/v1/trace_service.proto",
	}, s)
	srv.AddDescriptors(wire.Originals())
}

func (s *v2) export(srv any, ctx context.Context, dec func(any) error, in grpc.UnaryServerInterceptor) (any, error) {
	var req server.Raw
	if err := dec(&req); err != nil {
		return nil, err
	}
	return in(ctx, &req, &grpc.UnaryServerInfo{Server: srv, FullMethod: exportMethod}, s.write)
}

// write responds to an export request after the store has accepted the spans. The response reports
// spans that the store refused permanently.
func (s *v2) write(ctx context.Context, req any) (any, error) {
	resp := ptraceotlp.NewExportResponse()
	err := s.writers.otlp(ctx, s.toStore, *req.(*server.Raw))
	var partial *pipeline.Partial
	if errors.As(err, &partial) {
		resp.PartialSuccess().SetRejectedSpans(int64(partial.Rejected))
		resp.PartialSuccess().SetErrorMessage(text(partial.Error()))
	} else if err != nil {
		return nil, writeStatus(err)
	}
	raw, err := resp.MarshalProto()
	return (*server.Raw)(&raw), err
}

// GetCapabilities returns the search capabilities of the store.
func (*v2) GetCapabilities(context.Context, *storage_v2.GetCapabilitiesRequest) (*storage_v2.GetCapabilitiesResponse, error) {
	return &storage_v2.GetCapabilitiesResponse{Search: &storage_v2.SearchCapabilities{
		WithoutServiceName: true, SameSpanConjunction: true,
		Filter:    &storage_v2.FilterCapabilities{Levels: queryfilter.Levels(), Operators: queryfilter.Operators()},
		Paginated: true,
	}}, nil
}

// GetTraces sends the requested traces that exist, in the order of the request.
func (s *v2) GetTraces(req *storage_v2.GetTracesRequest, stream grpc.ServerStreamingServer[tracepb.TracesData]) error {
	refs := make([]tracestore.TraceRef, len(req.GetQuery()))
	for i, q := range req.GetQuery() {
		id := q.GetTraceId()
		if len(id) != len(refs[i].ID) {
			return status.Error(codes.InvalidArgument, "invalid trace_id: must have 16 bytes")
		}
		refs[i].ID = otlpdata.TraceID(id)
		var err error
		if refs[i].From, refs[i].To, err = window(q.GetStartTime(), q.GetEndTime()); err != nil {
			return err
		}
	}
	return s.read(stream.Context(), func(ctx context.Context, tenant string) error {
		return traces(ctx, s.store.Traces(ctx, tenant, refs), stream.SetTrailer, func(b *otlpdata.Batch) error { return s.send(stream, b) })
	})
}

// search runs a query and calls each for each trace, newest first. It returns the token of the next
// page. trailer is as in readers.find.
func (s *v2) search(ctx context.Context, tenant string, p *storage_v2.TraceQueryParameters, want tracestore.Want,
	trailer func(metadata.MD), each func(*tracestore.Result) error) (next string, err error) {
	q, err := queryV2(tenant, p)
	if err != nil {
		return "", err
	}
	if p.GetPagination() != nil {
		q.Limit = min(q.Limit, s.limit) // the next page has the others
	}
	end, err := s.find(ctx, s.store, q, want, trailer, each)
	return nextPage(tenant, p, end), err
}

// FindTraces sends the traces that match a query, newest first.
func (s *v2) FindTraces(req *storage_v2.FindTracesRequest, stream grpc.ServerStreamingServer[tracepb.TracesData]) error {
	return s.read(stream.Context(), func(ctx context.Context, tenant string) error {
		_, err := s.search(ctx, tenant, req.GetQuery(), tracestore.WantFull, stream.SetTrailer,
			func(r *tracestore.Result) error { return s.send(stream, r.Spans) })
		return err
	})
}

// send sends a trace or a piece of it in messages of at most max_chunk_size.
func (s *v2) send(stream grpc.ServerStream, b *otlpdata.Batch) error {
	if b.Size() <= s.chunk && b.Len() > 0 {
		encoded, err := b.Encoded()
		if err != nil {
			return err
		}
		return stream.SendMsg((*server.Raw)(&encoded))
	}
	return otlpchunks.Split(b, s.chunk, func(chunk []byte, _ int) error { return stream.SendMsg((*server.Raw)(&chunk)) })
}

// FindTraceIDs returns the ids of the traces that match a query, newest first, without their times.
func (s *v2) FindTraceIDs(ctx context.Context, req *storage_v2.FindTraceIDsRequest) (*storage_v2.FindTraceIDsResponse, error) {
	resp := &storage_v2.FindTraceIDsResponse{}
	err := s.read(ctx, func(inner context.Context, tenant string) (err error) {
		resp.NextPageToken, err = s.search(inner, tenant, req.GetQuery(), tracestore.WantIDs, unaryTrailer(ctx),
			func(r *tracestore.Result) error {
				resp.TraceIds = append(resp.TraceIds, &storage_v2.FoundTraceID{TraceId: r.ID[:]})
				return nil
			})
		return err
	})
	return resp, err
}

// summariesPerMessage is the number of summaries in one message.
const summariesPerMessage = 100

// FindTraceSummaries sends the summaries of the traces that match a query, newest first.
func (s *v2) FindTraceSummaries(req *storage_v2.FindTraceSummariesRequest,
	stream grpc.ServerStreamingServer[storage_v2.FindTraceSummariesResponse]) error {
	return s.read(stream.Context(), func(ctx context.Context, tenant string) error {
		resp := &storage_v2.FindTraceSummariesResponse{}
		next, err := s.search(ctx, tenant, req.GetQuery(), tracestore.WantSummaries, stream.SetTrailer, func(r *tracestore.Result) error {
			if len(resp.Summaries) == summariesPerMessage {
				full := resp
				resp = &storage_v2.FindTraceSummariesResponse{}
				if err := stream.Send(full); err != nil {
					return err
				}
			}
			resp.Summaries = append(resp.Summaries, summary(r.Summary))
			return nil
		})
		resp.NextPageToken = next
		if err != nil || len(resp.Summaries) == 0 && next == "" {
			return err
		}
		return stream.Send(resp)
	})
}

func summary(s *tracestore.Summary) *storage_v2.TraceSummary {
	out := &storage_v2.TraceSummary{
		TraceId: s.ID[:], RootServiceName: text(s.RootService), RootOperationName: text(s.RootName),
		MinStartTimeUnixNano: s.Start, MaxEndTimeUnixNano: s.End,
		SpanCount: count(s.Spans), ErrorSpanCount: count(s.Errors), OrphanSpanCount: count(s.Orphans),
	}
	for _, svc := range s.Services {
		out.Services = append(out.Services, &storage_v2.ServiceSummary{Name: text(svc.Name), SpanCount: count(svc.Spans),
			ErrorSpanCount: count(svc.Errors)})
	}
	return out
}

func count(n int) int32 { return int32(min(n, math.MaxInt32)) }

// GetServices lists the services.
func (s *v2) GetServices(ctx context.Context, _ *storage_v2.GetServicesRequest) (*storage_v2.GetServicesResponse, error) {
	resp := &storage_v2.GetServicesResponse{}
	err := s.read(ctx, func(inner context.Context, tenant string) error {
		names, more, err := s.store.Services(inner, tenant, tracestore.NameQuery{})
		err = noteMissing(ctx, len(names), more, err)
		resp.Services = remotestore.PutNames(resp, names)
		return err
	})
	return resp, err
}

// GetOperations lists the operations of a service.
func (s *v2) GetOperations(ctx context.Context, req *storage_v2.GetOperationsRequest) (*storage_v2.GetOperationsResponse, error) {
	resp := &storage_v2.GetOperationsResponse{}
	err := s.read(ctx, func(inner context.Context, tenant string) error {
		service := remotestore.Name(req, req.GetService())
		ops, more, err := s.store.Operations(inner, tenant, service, req.GetSpanKind(), tracestore.NameQuery{})
		err = noteMissing(ctx, len(ops), more, err)
		for _, op := range ops {
			resp.Operations = append(resp.Operations, &storage_v2.Operation{Name: text(op.Name), SpanKind: op.Kind})
		}
		return err
	})
	return resp, err
}

// GetDependencies counts the calls between services.
func (s *v2) GetDependencies(ctx context.Context, req *storage_v2.GetDependenciesRequest) (*storage_v2.GetDependenciesResponse, error) {
	resp := &storage_v2.GetDependenciesResponse{}
	err := s.dependencies(ctx, s.store, req, func(g tracestore.Graph) {
		for _, l := range links(g.Edges) {
			resp.Dependencies = append(resp.Dependencies, &storage_v2.Dependency{
				Parent: text(l.Parent), Child: text(l.Child), CallCount: l.Calls})
		}
		remotestore.PutEdges(resp, exactEdges(g.Edges))
	})
	return resp, err
}

// interval is a request for dependencies in either version.
type interval interface {
	GetStartTime() *timestamppb.Timestamp
	GetEndTime() *timestamppb.Timestamp
}

// dependencies reads the calls in an interval and passes them to fill.
func (r *readers) dependencies(ctx context.Context, store Store, req interval, fill func(tracestore.Graph)) error {
	from, to, err := window(req.GetStartTime(), req.GetEndTime())
	if err != nil {
		return err
	}
	return r.read(ctx, func(inner context.Context, tenant string) error {
		g, err := graph(inner, store, tenant, from, to)
		if err != nil {
			return err
		}
		if !g.Complete() {
			unaryTrailer(ctx)(incomplete(g.Text()))
		}
		fill(g)
		return nil
	})
}
