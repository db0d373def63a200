package querytest

import (
	"context"
	"maps"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// FullStore is a Store that also lists attributes and aggregates spans.
type FullStore struct{ *Store }

func (f FullStore) attributes(visit func(key, value string)) {
	f.each(func(s tracestore.Span, _ *otlpdata.Batch) {
		for _, kvs := range [][]otlpdata.KeyValue{s.Resource.Attributes, s.Attributes} {
			for _, kv := range kvs {
				visit(kv.Key, kv.Value.AsString())
			}
		}
		for _, e := range s.Events {
			for _, kv := range e.Attributes {
				visit(kv.Key, kv.Value.AsString())
			}
		}
	})
}

// AttributeKeys implements tracestore.Catalog.
func (f FullStore) AttributeKeys(ctx context.Context, _, _ string, limit int) ([]string, error) {
	if err := f.broken(ctx, 0); err != nil {
		return nil, err
	}
	keys := make(map[string]bool)
	f.attributes(func(key, _ string) { keys[key] = true })
	all := slices.Sorted(maps.Keys(keys))
	return all[:min(len(all), limit)], nil
}

// AttributeValues implements tracestore.Catalog.
func (f FullStore) AttributeValues(ctx context.Context, _, key, _ string, limit int) ([]string, error) {
	if err := f.broken(ctx, 0); err != nil {
		return nil, err
	}
	values := make(map[string]bool)
	f.attributes(func(k, v string) {
		if k == key {
			values[v] = true
		}
	})
	all := slices.Sorted(maps.Keys(values))
	return all[:min(len(all), limit)], nil
}

// Aggregate implements tracestore.Aggregator.
func (f FullStore) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	if err := f.broken(ctx, 0); err != nil {
		return tracestore.Aggregate{}, err
	}
	return storequery.AggregateSpans(q, a, f.Spans)
}
