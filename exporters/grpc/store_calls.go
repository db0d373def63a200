package grpc

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/tracing-backend/tracing/internal/translate/storewire"
	"github.com/tracing-backend/tracing/internal/wire/store_v1"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// AttributeKeys implements tracestore.AttributeCatalog.
func (e *exporter) AttributeKeys(ctx context.Context, tenant, prefix string, limit int) ([]string, error) {
	var answer store_v1.NamesResponse
	err := e.call(ctx, tenant, store_v1.Capability_CAPABILITY_ATTRIBUTE_CATALOG, store_v1.StoreService_AttributeKeys_FullMethodName,
		&store_v1.AttributeKeysRequest{Prefix: []byte(prefix), Limit: int64(limit)}, &answer)
	return storewire.GetTexts(answer.GetNames()), err
}

// AttributeValues implements tracestore.AttributeCatalog.
func (e *exporter) AttributeValues(ctx context.Context, tenant, key, prefix string, limit int) ([]string, error) {
	var answer store_v1.NamesResponse
	err := e.call(ctx, tenant, store_v1.Capability_CAPABILITY_ATTRIBUTE_CATALOG, store_v1.StoreService_AttributeValues_FullMethodName,
		&store_v1.AttributeValuesRequest{Key: []byte(key), Prefix: []byte(prefix), Limit: int64(limit)}, &answer)
	return storewire.GetTexts(answer.GetNames()), err
}

// Aggregate implements tracestore.Aggregator.
func (e *exporter) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	if err := a.Check(q); err != nil {
		return tracestore.Aggregate{}, err
	}
	needs := store_v1.Capability_CAPABILITY_AGGREGATOR
	if len(a.Groups.By) > 0 {
		needs = store_v1.Capability_CAPABILITY_GROUPS
	}
	var answer store_v1.AggregateResponse
	err := e.call(ctx, q.Tenant, needs, store_v1.StoreService_Aggregate_FullMethodName,
		storewire.PutAggregation(&q, &a), &answer)
	if err != nil {
		return tracestore.Aggregate{}, err
	}
	return storewire.GetAggregate(&answer)
}

// AggregatesGroups implements tracestore.GroupAggregator.
func (*exporter) AggregatesGroups() {}

// Peers implements tracestore.Peers.
func (e *exporter) Peers(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	var answer store_v1.GraphResponse
	err := e.call(ctx, tenant, store_v1.Capability_CAPABILITY_PEERS, store_v1.StoreService_Peers_FullMethodName,
		storewire.PutWindow(from, to), &answer)
	return storewire.GetGraph(&answer), err
}

// Edges implements tracestore.Edges.
func (e *exporter) Edges(ctx context.Context, tenant string, q tracestore.EdgeQuery) (tracestore.EdgeGraph, error) {
	var answer store_v1.EdgesResponse
	err := e.call(ctx, tenant, store_v1.Capability_CAPABILITY_EDGES, store_v1.StoreService_Edges_FullMethodName,
		storewire.PutEdgeQuery(&q), &answer)
	if err != nil {
		return tracestore.EdgeGraph{}, err
	}
	return storewire.GetEdges(&answer)
}

// storeDependencies counts the calls between services with the store service. ctx must have the
// metadata of withReadMetadata.
func (e *exporter) storeDependencies(ctx context.Context, from, to time.Time) (tracestore.Graph, error) {
	var answer store_v1.GraphResponse
	err := e.join(ctx, store_v1.StoreService_Dependencies_FullMethodName, storewire.PutWindow(from, to), &answer)
	return storewire.GetGraph(&answer), err
}

// storeServices is like storeDependencies, for services.
func (e *exporter) storeServices(ctx context.Context, q tracestore.NameQuery) (names []string, more bool, err error) {
	var answer store_v1.NamesResponse
	err = e.join(ctx, store_v1.StoreService_Services_FullMethodName,
		&store_v1.ServicesRequest{Prefix: []byte(q.Prefix), Limit: int64(q.Limit)}, &answer)
	return storewire.GetTexts(answer.GetNames()), answer.GetCut(), err
}

// storeOperations is like storeDependencies, for operations.
func (e *exporter) storeOperations(ctx context.Context, service, kind string, q tracestore.NameQuery) (
	ops []tracestore.Operation, more bool, err error,
) {
	var answer store_v1.OperationsResponse
	err = e.join(ctx, store_v1.StoreService_Operations_FullMethodName, &store_v1.OperationsRequest{
		Service: []byte(service), Kind: []byte(kind), Prefix: []byte(q.Prefix), Limit: int64(q.Limit)}, &answer)
	return storewire.GetOperations(&answer), answer.GetCut(), err
}

// Metrics implements tracestore.Metrics.
func (e *exporter) Metrics(ctx context.Context, tenant string, q tracestore.MetricsQuery) (tracestore.MetricsAnswer, error) {
	var answer store_v1.MetricsResponse
	err := e.call(ctx, tenant, store_v1.Capability_CAPABILITY_METRICS, store_v1.StoreService_Metrics_FullMethodName,
		storewire.PutMetricsQuery(&q), &answer)
	if err != nil {
		return tracestore.MetricsAnswer{}, err
	}
	return storewire.GetMetrics(&answer)
}

// Baselines implements tracestore.Baselines.
func (e *exporter) Baselines(ctx context.Context, tenant string, q tracestore.BaselineQuery) (tracestore.BaselineAnswer, error) {
	var answer store_v1.BaselinesResponse
	err := e.call(ctx, tenant, store_v1.Capability_CAPABILITY_BASELINES, store_v1.StoreService_Baselines_FullMethodName,
		storewire.PutBaselineQuery(&q), &answer)
	if err != nil {
		return tracestore.BaselineAnswer{}, err
	}
	return storewire.GetBaselines(&answer, len(q.Operations))
}

// ProfilePaths implements tracestore.PathProfiler.
func (e *exporter) ProfilePaths(
	ctx context.Context, q tracestore.Query, sel tracestore.Selection, o tracestore.PathOptions,
) (tracestore.PathProfile, error) {
	if err := o.Check(); err != nil {
		return tracestore.PathProfile{}, err
	}
	var answer store_v1.PathProfileResponse
	err := e.call(ctx, q.Tenant, store_v1.Capability_CAPABILITY_PATHS, store_v1.StoreService_ProfilePaths_FullMethodName,
		storewire.PutPathQuery(&q, &sel, o), &answer)
	if err != nil {
		return tracestore.PathProfile{}, err
	}
	return storewire.GetPathProfile(&answer)
}

// Delete implements tracestore.Deleter. The server must allow deletions, and so must its store.
func (e *exporter) Delete(ctx context.Context, tenant string, d tracestore.Deletion) (tracestore.Deleted, error) {
	ctx = e.withReadMetadata(ctx, tenant)
	if err := e.requires(ctx, store_v1.Capability_CAPABILITY_DELETER); err != nil {
		return tracestore.Deleted{}, err
	}
	resp, err := store_v1.NewStoreServiceClient(e.store).Delete(ctx, storewire.PutDeletion(&d))
	return tracestore.Deleted{Spans: int(resp.GetSpans())}, e.storeError(ctx, err)
}

// FindSpans implements tracestore.SpanFinder.
func (e *exporter) FindSpans(
	ctx context.Context, tenant string, id otlpdata.TraceID, c tracestore.SpanCondition,
) (tracestore.FoundSpans, error) {
	var answer store_v1.FindSpansResponse
	err := e.call(ctx, tenant, store_v1.Capability_CAPABILITY_SPAN_FINDER, store_v1.StoreService_FindSpans_FullMethodName,
		storewire.PutSpanCondition(id, c), &answer)
	return storewire.GetFoundSpans(&answer), err
}

// TraceVersion implements tracestore.Versioner.
func (e *exporter) TraceVersion(ctx context.Context, tenant string, id otlpdata.TraceID) (tracestore.TraceVersion, error) {
	ctx = e.withReadMetadata(ctx, tenant)
	if err := e.requires(ctx, store_v1.Capability_CAPABILITY_VERSIONER); err != nil {
		return tracestore.TraceVersion{}, err
	}
	resp, err := store_v1.NewStoreServiceClient(e.store).TraceVersion(ctx, &store_v1.TraceVersionRequest{TraceId: id[:]})
	return storewire.GetTraceVersion(resp), e.storeError(ctx, err)
}

// Usage implements tracestore.UsageReporter.
func (e *exporter) Usage(ctx context.Context, tenant string) (tracestore.Usage, error) {
	ctx = e.withReadMetadata(ctx, tenant)
	if err := e.requires(ctx, store_v1.Capability_CAPABILITY_USAGE); err != nil {
		return tracestore.Usage{}, err
	}
	resp, err := store_v1.NewStoreServiceClient(e.store).Usage(ctx, &store_v1.UsageRequest{})
	return storewire.GetUsage(resp), e.storeError(ctx, err)
}

// SelectSpans implements tracestore.SpanSelector.
func (e *exporter) SelectSpans(
	ctx context.Context, tenant string, id otlpdata.TraceID, spans []otlpdata.SpanID,
) iter.Seq2[tracestore.Trace, error] {
	return func(yield func(tracestore.Trace, error) bool) {
		ctx := e.withReadMetadata(ctx, tenant)
		if err := e.requires(ctx, store_v1.Capability_CAPABILITY_SPAN_SELECTOR); err != nil {
			yield(tracestore.Trace{}, err)
			return
		}
		e.traceStream(ctx, tenant, store_v1.StoreService_SelectSpans_FullMethodName, storewire.PutSelection(id, spans),
			[]tracestore.TraceRef{{ID: id}}, yield)
	}
}

// Outline implements tracestore.Outliner.
func (e *exporter) Outline(
	ctx context.Context, tenant string, id otlpdata.TraceID, limit int,
	hold func(spans, textBytes int) error, take func([]tracestore.SummarySpan) error,
) error {
	ctx = e.withReadMetadata(ctx, tenant)
	if err := e.requires(ctx, store_v1.Capability_CAPABILITY_OUTLINER); err != nil {
		return err
	}
	memory, err := tracestore.Reserve(ctx, 0)
	if err != nil {
		return err
	}
	defer memory.Release()
	var r storewire.OutlineReader
	var stopped error
	req := &store_v1.OutlineRequest{TraceId: id[:], Limit: int64(limit)}
	_, err = receive(ctx, e.store, store_v1.StoreService_Outline_FullMethodName, req, func(message []byte) error {
		var part store_v1.OutlineResponse
		if err := memory.Resize(r.Held() + decodedMemory(&part, message)); err != nil {
			return err
		}
		if err := storewire.Join(&part, message); err != nil {
			return err
		}
		if err := r.Get(&part); err != nil {
			return err
		}
		stopped = hold(len(r.Spans), r.TextBytes)
		return stopped
	})
	if stopped != nil {
		return stopped
	}
	err = e.storeError(ctx, err)
	var damaged *tracestore.DamagedError
	if err != nil && !errors.As(err, &damaged) || len(r.Spans) == 0 {
		return err
	}
	if err := take(r.Spans); err != nil {
		return err
	}
	return err
}
