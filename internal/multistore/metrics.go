package multistore

import (
	"context"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

var _ tracestore.Metrics = (*Store)(nil)

// Metrics implements tracestore.Metrics. The points of all stores add up, which is exact because
// points and buckets of durations begin at the same values everywhere. If the operations of a
// service exceed tracestore.MaxOperations only together, those of the first stores have their own
// series.
func (s *Store) Metrics(ctx context.Context, tenant string, q tracestore.MetricsQuery) (tracestore.MetricsAnswer, error) {
	answers, missing, err := ask(ctx, s, tenant, func(ctx context.Context, m tracestore.Metrics) (tracestore.MetricsAnswer, error) {
		return m.Metrics(ctx, tenant, q)
	})
	if err != nil {
		return tracestore.MetricsAnswer{}, err
	}
	sum := storequery.NewMetricsCounter(q)
	for _, a := range answers {
		missing.Add(a.value.Of(a.store)...)
		if a.value.Step != q.StepLength() {
			missing.Add(wrong(a.store, "the points of the response have a different length"))
			continue
		}
		for i := range a.value.Series {
			one := &a.value.Series[i]
			series, ok := sum.Series(one.Service, one.Operation, "")
			for j := 0; ok && j < len(one.Points); j++ {
				sum.AddPoint(series, &one.Points[j])
			}
		}
	}
	out := sum.Answer()
	missing.Add(out.Reasons...)
	out.Reasons = missing
	return out, nil
}

// Baselines implements tracestore.Metrics. The histograms of all stores add up, which is exact.
func (s *Store) Baselines(ctx context.Context, tenant string, q tracestore.BaselineQuery) (tracestore.BaselineAnswer, error) {
	answers, missing, err := ask(ctx, s, tenant, func(ctx context.Context, b tracestore.Metrics) (tracestore.BaselineAnswer, error) {
		return b.Baselines(ctx, tenant, q)
	})
	if err != nil {
		return tracestore.BaselineAnswer{}, err
	}
	out := tracestore.BaselineAnswer{Durations: make([]tracestore.Histogram, len(q.Operations))}
	for _, a := range answers {
		missing.Add(a.value.Of(a.store)...)
		if len(a.value.Durations) != len(q.Operations) {
			missing.Add(wrong(a.store, "the response is for other operations"))
			continue
		}
		for i := range a.value.Durations {
			out.Durations[i].Add(&a.value.Durations[i])
		}
	}
	out.Reasons = missing
	return out, nil
}
