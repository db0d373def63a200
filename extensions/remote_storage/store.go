package remotestorage

import (
	"context"
	"errors"
	"iter"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"github.com/tracing-backend/tracing/internal/translate/storewire"
	"github.com/tracing-backend/tracing/internal/wire/store_v1"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/server"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// storeService serves everything that a store can do to other processes of this program.
type storeService struct {
	store_v1.UnimplementedStoreServiceServer
	*readers
	store       Store
	allowDelete bool
	showUsage   bool // clients are not single tenants
	feeds       *feeds
}

func registerStore(srv *server.GRPC, r *readers, f *feeds, store Store, c *Config) {
	store_v1.RegisterStoreServiceServer(srv, &storeService{
		readers: r, store: store, allowDelete: c.AllowDelete, showUsage: !c.SeparatesTenants(), feeds: f})
}

// Capabilities returns the optional interfaces that the store supports.
func (s *storeService) Capabilities(ctx context.Context, req *store_v1.CapabilitiesRequest) (*store_v1.CapabilitiesResponse, error) {
	resp := &store_v1.CapabilitiesResponse{Version: min(req.GetVersion(), storewire.Version)}
	err := s.read(ctx, func(ctx context.Context, tenant string) error {
		resp.Capabilities = s.capabilities(ctx, tenant)
		return nil
	})
	return resp, err
}

func (s *storeService) capabilities(ctx context.Context, tenant string) []store_v1.Capability {
	out := []store_v1.Capability{store_v1.Capability_CAPABILITY_READER, store_v1.Capability_CAPABILITY_CATALOG}
	add := func(supported bool, c store_v1.Capability) {
		if supported {
			out = append(out, c)
		}
	}
	add(has[tracestore.AttributeCatalog](ctx, tenant, s.store), store_v1.Capability_CAPABILITY_ATTRIBUTE_CATALOG)
	add(has[tracestore.Aggregator](ctx, tenant, s.store), store_v1.Capability_CAPABILITY_AGGREGATOR)
	add(has[tracestore.Dependencies](ctx, tenant, s.store), store_v1.Capability_CAPABILITY_DEPENDENCIES)
	add(has[tracestore.Peers](ctx, tenant, s.store), store_v1.Capability_CAPABILITY_PEERS)
	add(has[tracestore.Edges](ctx, tenant, s.store), store_v1.Capability_CAPABILITY_EDGES)
	add(has[tracestore.Metrics](ctx, tenant, s.store), store_v1.Capability_CAPABILITY_METRICS)
	add(has[tracestore.Baselines](ctx, tenant, s.store), store_v1.Capability_CAPABILITY_BASELINES)
	add(has[tracestore.Outliner](ctx, tenant, s.store), store_v1.Capability_CAPABILITY_OUTLINER)
	add(has[tracestore.SpanSelector](ctx, tenant, s.store), store_v1.Capability_CAPABILITY_SPAN_SELECTOR)
	add(has[tracestore.SpanFinder](ctx, tenant, s.store), store_v1.Capability_CAPABILITY_SPAN_FINDER)
	add(has[tracestore.PathProfiler](ctx, tenant, s.store), store_v1.Capability_CAPABILITY_PATHS)
	add(has[tracestore.Versioner](ctx, tenant, s.store), store_v1.Capability_CAPABILITY_VERSIONER)
	add(has[tracestore.UsageReporter](ctx, tenant, s.store) && s.showUsage, store_v1.Capability_CAPABILITY_USAGE)
	add(has[tracestore.GroupAggregator](ctx, tenant, s.store), store_v1.Capability_CAPABILITY_GROUPS)
	add(has[tracestore.Follower](ctx, tenant, s.store) && s.feeds.limit() > 0, store_v1.Capability_CAPABILITY_FOLLOWER)
	add(has[tracestore.Deleter](ctx, tenant, s.store) && s.allowDelete, store_v1.Capability_CAPABILITY_DELETER)
	return out
}

func has[T any](ctx context.Context, tenant string, store Store) bool {
	_, ok := tracestore.As[T](ctx, tenant, store)
	return ok
}

// answer runs a read of the optional interface T and sends the answer of f in parts, also if it
// comes with a DamagedError.
func answer[T any](s *storeService, stream grpc.ServerStream,
	f func(ctx context.Context, tenant string, store T) (proto.Message, error),
) error {
	return s.read(stream.Context(), func(ctx context.Context, tenant string) error {
		store, ok := tracestore.As[T](ctx, tenant, s.store)
		if !ok {
			return storeStatus(tracestore.ErrUnsupported)
		}
		m, damage := f(ctx, tenant, store)
		if damaged := (*tracestore.DamagedError)(nil); damage != nil && !errors.As(damage, &damaged) {
			return storeStatus(damage)
		}
		memory, err := tracestore.Reserve(ctx, int64(proto.Size(m)))
		if err != nil {
			return err
		}
		defer memory.Release()
		err = storewire.Split(m, s.chunk, func(part []byte) error { return stream.SendMsg((*server.Raw)(&part)) })
		if err != nil || damage == nil {
			return err
		}
		return storeStatus(damage)
	})
}

// Traces sends the requested traces that exist, in the order of the request.
func (s *storeService) Traces(req *store_v1.TracesRequest, stream grpc.ServerStreamingServer[store_v1.TracesResponse]) error {
	refs, err := storewire.GetRefs(req)
	if err != nil {
		return storeStatus(err)
	}
	return s.read(stream.Context(), func(ctx context.Context, tenant string) error {
		return s.sendTraces(ctx, s.store.Traces(ctx, tenant, refs), stream)
	})
}

func (s *storeService) sendTraces(
	ctx context.Context, traces iter.Seq2[tracestore.Trace, error], stream grpc.ServerStreamingServer[store_v1.TracesResponse],
) error {
	for t, err := range traces {
		if err != nil {
			return storeStatus(err)
		}
		err = eachPiece(t.Spans, s.chunk, func(piece []byte) error {
			return stream.Send(&store_v1.TracesResponse{Id: t.ID[:], Spans: [][]byte{piece}})
		})
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// SelectSpans sends some spans of a trace.
func (s *storeService) SelectSpans(
	req *store_v1.SelectSpansRequest, stream grpc.ServerStreamingServer[store_v1.TracesResponse],
) error {
	id, spans, err := storewire.GetSelection(req)
	if err != nil {
		return storeStatus(err)
	}
	return s.read(stream.Context(), func(ctx context.Context, tenant string) error {
		store, ok := tracestore.As[tracestore.SpanSelector](ctx, tenant, s.store)
		if !ok {
			return storeStatus(tracestore.ErrUnsupported)
		}
		return s.sendTraces(ctx, store.SelectSpans(ctx, tenant, id, spans), stream)
	})
}

// Find sends the traces that match a query, newest first.
func (s *storeService) Find(req *store_v1.FindRequest, stream grpc.ServerStreamingServer[store_v1.FindResponse]) error {
	return s.read(stream.Context(), func(ctx context.Context, tenant string) error {
		q, err := storewire.GetQuery(tenant, req.GetQuery())
		if err != nil {
			return storeStatus(err)
		}
		want, err := storewire.GetWant(req.GetWant())
		if err != nil {
			return storeStatus(err)
		}
		capped := q.Limit <= 0 || q.Limit > s.limit
		if capped {
			q.Limit = s.limit
		}
		s.limitWork(&q)
		results, err := s.store.Find(ctx, q, want)
		if err != nil {
			return storeStatus(err)
		}
		w := foundWriter{chunk: s.chunk, send: stream.Send, scanned: func() int { return results.Outcome().Scanned }}
		for r, err := range results.All {
			if err != nil {
				return storeStatus(err)
			}
			if err := w.add(&r); err != nil {
				return err
			}
		}
		o := results.Outcome()
		w.message.Outcome = storewire.PutOutcome(&o, capped && o.Complete() && o.Next.Set)
		return w.flush()
	})
}

// limitWork limits the work of a query to max_scanned_spans.
func (s *storeService) limitWork(q *tracestore.Query) {
	if q.Budget.Spans <= 0 || q.Budget.Spans > s.scanned {
		q.Budget.Spans = s.scanned
	}
}

// storeStatus returns the status for an error of a store, with a reason for errors that the client
// distinguishes. It leaves errors of the context to the caller.
func storeStatus(err error) error {
	var damaged *tracestore.DamagedError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, tracestore.ErrUnsupported):
		return status.Error(codes.Unimplemented, text(err.Error()))
	case errors.Is(err, tracestore.ErrNotAllowed):
		return withReason(codes.PermissionDenied, err, storewire.ReasonNotAllowed)
	case errors.Is(err, tracestore.ErrBadDeletion):
		return withReason(codes.InvalidArgument, err, storewire.ReasonBadDeletion)
	case errors.As(err, &damaged):
		return withDetail(codes.DataLoss, err, storewire.PutDamage(damaged))
	case errors.Is(err, storewire.ErrInvalid):
		return status.Error(codes.InvalidArgument, text(err.Error()))
	}
	s := pipeline.GRPCStatus(err)
	if _, ok := status.FromError(err); !ok && s.Code() == codes.Unavailable { // the default of unknown errors
		return status.Error(codes.Internal, text(err.Error()))
	}
	return s.Err()
}

func withReason(code codes.Code, err error, reason string) error {
	return withDetail(code, err, &errdetails.ErrorInfo{Reason: reason, Domain: storewire.Domain})
}

func withDetail(code codes.Code, err error, detail protoadapt.MessageV1) error {
	s := status.New(code, text(err.Error()))
	detailed, derr := s.WithDetails(detail)
	if derr != nil { // cannot happen
		return s.Err()
	}
	return detailed.Err()
}
