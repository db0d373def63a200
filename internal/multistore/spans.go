package multistore

import (
	"context"
	"encoding/binary"
	"hash/fnv"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// FindSpans implements tracestore.Reader. The ids of duplicates in several stores are returned
// once.
func (s *Store) FindSpans(
	ctx context.Context, tenant string, id otlpdata.TraceID, c tracestore.SpanCondition,
) (all tracestore.FoundSpans, err error) {
	answers, missing, err := ask(ctx, s, tenant, func(ctx context.Context, f tracestore.Reader) (tracestore.FoundSpans, error) {
		return f.FindSpans(ctx, tenant, id, c)
	})
	if err != nil {
		return all, err
	}
	seen := make(map[otlpdata.SpanID]struct{})
	for i, a := range answers {
		all.Spans += a.value.Spans
		for _, id := range a.value.IDs {
			if _, earlier := seen[id]; !earlier {
				all.IDs = append(all.IDs, id)
			}
		}
		if i < len(answers)-1 {
			for _, id := range a.value.IDs {
				seen[id] = struct{}{}
			}
		}
	}
	return all, damage(missing)
}

// TraceSpans implements tracestore.Reader. It does not call the stores, which are in other
// processes.
func (s *Store) TraceSpans(context.Context, string, otlpdata.TraceID) (int, error) { return 0, nil }

// TraceVersion implements tracestore.Reader. The number changes when the number in any store does.
func (s *Store) TraceVersion(ctx context.Context, tenant string, id otlpdata.TraceID) (all tracestore.TraceVersion, err error) {
	answers, missing, err := ask(ctx, s, tenant, func(ctx context.Context, v tracestore.Reader) (tracestore.TraceVersion, error) {
		return v.TraceVersion(ctx, tenant, id)
	})
	if err == nil {
		err = damage(missing)
	}
	if err != nil {
		return all, err
	}
	numbers := fnv.New64a()
	exists := false
	for _, a := range answers {
		exists = exists || a.value.Number != 0
		_, _ = numbers.Write(binary.LittleEndian.AppendUint64(nil, a.value.Number)) // never fails
		if a.value.Stored.After(all.Stored) {
			all.Stored = a.value.Stored
		}
	}
	if exists {
		all.Number = max(numbers.Sum64(), 1)
	}
	return all, nil
}
