package remotestorage

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/tracing-backend/tracing/internal/translate/otlpchunks"
	"github.com/tracing-backend/tracing/internal/translate/storewire"
	"github.com/tracing-backend/tracing/internal/wire/store_v1"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// eachPiece passes the encoded spans of a batch to send, in pieces of at most limit bytes. Only a
// piece with a single span may be larger.
func eachPiece(b *otlpdata.Batch, limit int, send func(piece []byte) error) error {
	if b.Size() > limit {
		return otlpchunks.Split(b, limit, func(piece []byte, _ int) error { return send(piece) })
	}
	encoded, err := b.Encoded()
	if err != nil || b.Len() == 0 {
		return err
	}
	return send(encoded)
}

// foundWriter sends results in messages of about max_chunk_size.
type foundWriter struct {
	chunk   int
	scanned func() int // spans examined so far
	send    func(*store_v1.FindResponse) error
	message store_v1.FindResponse // not sent yet
	size    int                   // bytes of its traces
}

// foundPerMessage is the maximum number of results in one message.
const foundPerMessage = 100

func (w *foundWriter) add(r *tracestore.Result) error {
	f := storewire.PutFound(r)
	w.message.Traces = append(w.message.Traces, f)
	w.size += proto.Size(f)
	if r.Spans != nil {
		err := eachPiece(r.Spans, w.chunk, func(piece []byte) error {
			if w.size+len(piece) > w.chunk && w.size > 0 {
				f.More = true
				if err := w.flush(); err != nil {
					return err
				}
				f = &store_v1.FoundTrace{Id: f.Id}
				w.message.Traces = append(w.message.Traces, f)
			}
			f.Spans = append(f.Spans, piece)
			w.size += len(piece)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if w.size < w.chunk && len(w.message.Traces) < foundPerMessage {
		return nil
	}
	return w.flush()
}

func (w *foundWriter) flush() error {
	m := &store_v1.FindResponse{Traces: w.message.Traces, Outcome: w.message.Outcome, Scanned: int64(w.scanned())}
	w.message.Traces, w.size = nil, 0
	return w.send(m)
}

// Services lists the services.
func (s *storeService) Services(req *store_v1.ServicesRequest, stream grpc.ServerStreamingServer[store_v1.NamesResponse]) error {
	return answer(s, stream, func(ctx context.Context, tenant string, c tracestore.Catalog) (proto.Message, error) {
		names, more, err := c.Services(ctx, tenant, tracestore.NameQuery{Prefix: string(req.GetPrefix()), Limit: int(req.GetLimit())})
		return storewire.PutNames(names, more), err
	})
}

// Operations lists the operations of a service.
func (s *storeService) Operations(
	req *store_v1.OperationsRequest, stream grpc.ServerStreamingServer[store_v1.OperationsResponse],
) error {
	return answer(s, stream, func(ctx context.Context, tenant string, c tracestore.Catalog) (proto.Message, error) {
		q := tracestore.NameQuery{Prefix: string(req.GetPrefix()), Limit: int(req.GetLimit())}
		ops, more, err := c.Operations(ctx, tenant, string(req.GetService()), string(req.GetKind()), q)
		return storewire.PutOperations(ops, more), err
	})
}

// AttributeKeys lists attribute keys.
func (s *storeService) AttributeKeys(
	req *store_v1.AttributeKeysRequest, stream grpc.ServerStreamingServer[store_v1.NamesResponse],
) error {
	return answer(s, stream, func(ctx context.Context, tenant string, c tracestore.AttributeCatalog) (proto.Message, error) {
		keys, err := c.AttributeKeys(ctx, tenant, string(req.GetPrefix()), int(req.GetLimit()))
		return storewire.PutNames(keys, false), err
	})
}

// AttributeValues lists values of an attribute.
func (s *storeService) AttributeValues(
	req *store_v1.AttributeValuesRequest, stream grpc.ServerStreamingServer[store_v1.NamesResponse],
) error {
	return answer(s, stream, func(ctx context.Context, tenant string, c tracestore.AttributeCatalog) (proto.Message, error) {
		values, err := c.AttributeValues(ctx, tenant, string(req.GetKey()), string(req.GetPrefix()), int(req.GetLimit()))
		return storewire.PutNames(values, false), err
	})
}

// Aggregate computes heatmaps, facets, groups and exemplars.
func (s *storeService) Aggregate(req *store_v1.AggregateRequest, stream grpc.ServerStreamingServer[store_v1.AggregateResponse]) error {
	return answer(s, stream, func(ctx context.Context, tenant string, store tracestore.Aggregator) (proto.Message, error) {
		q, a, err := storewire.GetAggregation(tenant, req)
		if err != nil {
			return nil, err
		}
		if err := a.Check(q); err != nil {
			return nil, invalid(err)
		}
		s.limitWork(&q)
		found, err := store.Aggregate(ctx, q, a)
		return storewire.PutAggregate(&found), err
	})
}

// ProfilePaths compares the critical paths and call paths of two sets of traces.
func (s *storeService) ProfilePaths(
	req *store_v1.PathProfileRequest, stream grpc.ServerStreamingServer[store_v1.PathProfileResponse],
) error {
	return answer(s, stream, func(ctx context.Context, tenant string, store tracestore.PathProfiler) (proto.Message, error) {
		q, sel, o, err := storewire.GetPathQuery(tenant, req)
		if err != nil {
			return nil, err
		}
		if err := o.Check(); err != nil {
			return nil, invalid(err)
		}
		s.limitWork(&q)
		found, err := store.ProfilePaths(ctx, q, sel, o)
		return storewire.PutPathProfile(&found), err
	})
}

// Dependencies counts the calls between services.
func (s *storeService) Dependencies(req *store_v1.GraphRequest, stream grpc.ServerStreamingServer[store_v1.GraphResponse]) error {
	return answer(s, stream, func(ctx context.Context, tenant string, store tracestore.Dependencies) (proto.Message, error) {
		from, to := storewire.GetWindow(req)
		g, err := store.Dependencies(ctx, tenant, from, to)
		return storewire.PutGraph(&g), err
	})
}

// Peers counts the calls to systems that send no spans.
func (s *storeService) Peers(req *store_v1.GraphRequest, stream grpc.ServerStreamingServer[store_v1.GraphResponse]) error {
	return answer(s, stream, func(ctx context.Context, tenant string, store tracestore.Peers) (proto.Message, error) {
		from, to := storewire.GetWindow(req)
		g, err := store.Peers(ctx, tenant, from, to)
		return storewire.PutGraph(&g), err
	})
}

// Edges measures the calls between services and to systems that send no spans.
func (s *storeService) Edges(req *store_v1.EdgesRequest, stream grpc.ServerStreamingServer[store_v1.EdgesResponse]) error {
	return answer(s, stream, func(ctx context.Context, tenant string, store tracestore.Edges) (proto.Message, error) {
		g, err := store.Edges(ctx, tenant, storewire.GetEdgeQuery(req))
		return storewire.PutEdges(&g), err
	})
}

// Metrics counts calls, errors and durations.
func (s *storeService) Metrics(req *store_v1.MetricsRequest, stream grpc.ServerStreamingServer[store_v1.MetricsResponse]) error {
	return answer(s, stream, func(ctx context.Context, tenant string, store tracestore.Metrics) (proto.Message, error) {
		got, err := store.Metrics(ctx, tenant, storewire.GetMetricsQuery(req))
		return storewire.PutMetrics(&got), err
	})
}

// Baselines counts the durations of single operations.
func (s *storeService) Baselines(
	req *store_v1.BaselinesRequest, stream grpc.ServerStreamingServer[store_v1.BaselinesResponse],
) error {
	q, err := storewire.GetBaselineQuery(req)
	if err != nil {
		return storeStatus(err)
	}
	return answer(s, stream, func(ctx context.Context, tenant string, store tracestore.Baselines) (proto.Message, error) {
		got, err := store.Baselines(ctx, tenant, q)
		return storewire.PutBaselines(&got), err
	})
}

// FindSpans sends the ids of the spans of a trace that meet a condition.
func (s *storeService) FindSpans(req *store_v1.FindSpansRequest, stream grpc.ServerStreamingServer[store_v1.FindSpansResponse]) error {
	id, c, err := storewire.GetSpanCondition(req)
	if err != nil {
		return storeStatus(err)
	}
	return s.read(stream.Context(), func(ctx context.Context, tenant string) error {
		store, ok := tracestore.As[tracestore.SpanFinder](ctx, tenant, s.store)
		if !ok {
			return storeStatus(tracestore.ErrUnsupported)
		}
		found, err := store.FindSpans(ctx, tenant, id, c)
		if damaged := (*tracestore.DamagedError)(nil); err != nil && !errors.As(err, &damaged) {
			return storeStatus(err)
		}
		for part := range storewire.PutFoundSpans(found) {
			if serr := stream.Send(part); serr != nil {
				return serr
			}
		}
		return storeStatus(err)
	})
}

// TraceVersion tells whether a trace has changed.
func (s *storeService) TraceVersion(ctx context.Context, req *store_v1.TraceVersionRequest) (*store_v1.TraceVersionResponse, error) {
	id, err := storewire.GetTraceID(req.GetTraceId())
	if err != nil {
		return nil, storeStatus(err)
	}
	var v tracestore.TraceVersion
	err = s.read(ctx, func(ctx context.Context, tenant string) error {
		store, ok := tracestore.As[tracestore.Versioner](ctx, tenant, s.store)
		if !ok {
			return storeStatus(tracestore.ErrUnsupported)
		}
		v, err = store.TraceVersion(ctx, tenant, id)
		return storeStatus(err)
	})
	return storewire.PutTraceVersion(v), err
}

// Usage tells what the store holds for all tenants together.
func (s *storeService) Usage(ctx context.Context, _ *store_v1.UsageRequest) (resp *store_v1.UsageResponse, _ error) {
	err := s.read(ctx, func(ctx context.Context, tenant string) error {
		store, ok := tracestore.As[tracestore.UsageReporter](ctx, tenant, s.store)
		if !ok || !s.showUsage {
			return storeStatus(tracestore.ErrUnsupported)
		}
		u, err := store.Usage(ctx, tenant)
		resp = storewire.PutUsage(u)
		return storeStatus(err)
	})
	return resp, err
}

// spansPerOutline is the number of spans in one message of an outline.
const spansPerOutline = 4096

// Outline sends what is needed to draw a trace.
func (s *storeService) Outline(req *store_v1.OutlineRequest, stream grpc.ServerStreamingServer[store_v1.OutlineResponse]) error {
	id, err := storewire.GetTraceID(req.GetTraceId())
	if err != nil {
		return storeStatus(err)
	}
	return s.read(stream.Context(), func(ctx context.Context, tenant string) error {
		store, ok := tracestore.As[tracestore.Outliner](ctx, tenant, s.store)
		if !ok {
			return storeStatus(tracestore.ErrUnsupported)
		}
		memory, err := tracestore.Reserve(ctx, 0)
		if err != nil {
			return err
		}
		defer memory.Release()
		hold := func(spans, textBytes int) error { return memory.Resize(int64(spans)*outlineMemory + int64(textBytes)) }
		var w storewire.OutlineWriter
		err = store.Outline(ctx, tenant, id, int(req.GetLimit()), hold, func(spans []tracestore.SummarySpan) error {
			for part := range slices.Chunk(spans, spansPerOutline) {
				if err := stream.Send(w.Put(part)); err != nil {
					return err
				}
			}
			return nil
		})
		return storeStatus(err)
	})
}

// outlineMemory is the approximate size of a tracestore.SummarySpan in bytes.
const outlineMemory = 96

// Delete deletes spans.
func (s *storeService) Delete(ctx context.Context, req *store_v1.DeleteRequest) (*store_v1.DeleteResponse, error) {
	resp := &store_v1.DeleteResponse{}
	err := s.read(ctx, func(ctx context.Context, tenant string) error {
		store, ok := tracestore.As[tracestore.Deleter](ctx, tenant, s.store)
		switch {
		case !ok:
			return storeStatus(tracestore.ErrUnsupported)
		case !s.allowDelete:
			return withReason(codes.PermissionDenied, errDeleteNotAllowed, storewire.ReasonNotAllowed)
		}
		d, err := storewire.GetDeletion(req)
		if err != nil {
			return storeStatus(err)
		}
		deleted, err := store.Delete(ctx, tenant, d)
		resp.Spans = int64(deleted.Spans)
		return storeStatus(err)
	})
	return resp, err
}

var errDeleteNotAllowed = errors.New(
	"deleting spans through remote storage is not allowed: set allow_delete: true in the configuration of remote_storage")
