package multistore

import (
	"context"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/aggregates"
)

var _ tracestore.Aggregator = (*Store)(nil)

// Aggregate implements tracestore.Aggregator. Each store may examine as many spans as Budget.Spans
// permits, so that a store with many spans is not sampled more because of the others.
//
//   - Heatmaps, totals and groups are sums of what the stores counted, and so are the values of
//     facets: each store returns all values and groups that it counted (FacetQuery.All), and order,
//     scores, Distinct, Other and Omitted come from the sums. All of this is exact if every store
//     examined all spans and no limit of package storequery was reached, in a store or in the sum.
//     If the stores have more values of a field than storequery.MaxFacetDistinct, values that are
//     the most frequent in one store, or in its sample, are counted, and the others are part of
//     Other; the same holds for groups and storequery.MaxGroupsCounted.
//   - A span that is stored in several stores counts once for each.
//   - If stores examined different shares of their spans, all counts are reduced to the lowest
//     share; see aggregates.Add. Share is the sum of the counts divided by the sum of the estimates
//     of the stores, so that the total divided by Share is an unbiased estimate if the estimates of
//     the stores are. Single counts are unbiased, too, within their rounding error.
//   - RelativeError follows from the errors of the stores, whose samples are independent.
//   - Each store returns as many exemplars as requested; the result is a selection from all stores.
func (s *Store) Aggregate(ctx context.Context, q tracestore.Query, a tracestore.Aggregation) (tracestore.Aggregate, error) {
	if err := a.Check(q); err != nil {
		return tracestore.Aggregate{}, err
	}
	of := a
	of.Facets.All = a.Facets.Values > 0
	of.Groups.All = a.Groups.Requested()
	answers, missing, err := ask(ctx, s, q.Tenant, func(ctx context.Context, store tracestore.Aggregator) (tracestore.Aggregate, error) {
		return store.Aggregate(ctx, q, of)
	})
	if err != nil {
		return tracestore.Aggregate{}, err
	}
	memory, err := tracestore.Reserve(ctx, 0)
	if err != nil {
		return tracestore.Aggregate{}, err
	}
	defer memory.Release()
	return mergeAggregates(q, a, answers, missing, memory)
}

// mergeAggregates merges the results of stores for an aggregation that requested all values and
// groups. It modifies the results.
func mergeAggregates(
	q tracestore.Query, a tracestore.Aggregation, answers []answer[tracestore.Aggregate], missing tracestore.Reasons,
	memory *tracestore.Memory,
) (out tracestore.Aggregate, err error) {
	var parts []*tracestore.Aggregate
	for i := range answers {
		p, name := &answers[i].value, answers[i].store
		if text := mismatch(q, &a, p); text != "" {
			missing.Add(wrong(name, text))
			continue
		}
		if err := memory.Grow(aggregates.Size(p)); err != nil {
			return out, err
		}
		missing.Add(p.Of(name)...)
		p.Reasons = nil
		parts = append(parts, p)
	}
	out = aggregates.Add(q, a, parts, memory)
	missing.Add(out.Reasons...)
	out.Reasons = missing
	return out, nil
}

// mismatch describes why the result of a store cannot be added to others, or returns "". A store in
// another process may return anything.
func mismatch(q tracestore.Query, a *tracestore.Aggregation, p *tracestore.Aggregate) string {
	switch {
	case (a.Heatmap.Step > 0) != (p.Heatmap != nil), (a.Facets.Values > 0) != (p.Facets != nil), a.Groups.Requested() != (p.Groups != nil):
		return "the response lacks requested parts"
	case p.Groups != nil && !haveParts(p.Groups, q, &a.Groups):
		return "the groups do not have the parts of the window that were requested"
	case p.Heatmap == nil:
		return ""
	case p.Heatmap.Step != uint64(a.Heatmap.Step):
		return "the heatmap has columns of another width"
	}
	from, to, ok := q.Window()
	first := from - from%p.Heatmap.Step
	for i := range p.Heatmap.Cells {
		c := &p.Heatmap.Cells[i]
		if !ok || c.Start < first || c.Start > to || c.Bucket < 0 || c.Bucket >= tracestore.HeatBuckets || c.Count == 0 {
			return "the heatmap has cells that are empty or outside of the time range"
		}
	}
	return ""
}

// haveParts reports whether groups have the parts and numbers that a query requested.
func haveParts(groups *tracestore.Groups, q tracestore.Query, want *tracestore.GroupQuery) bool {
	parts, numbers := want.PartsOf(q).N, 0
	if want.Measure != tracestore.MeasureNone {
		numbers = max(parts, 1)
	}
	wrong := func(g tracestore.Group) bool {
		return g.Durations.Count() > 0 && (len(g.Parts) != parts || len(g.Numbers) != numbers)
	}
	return !wrong(groups.All) && !slices.ContainsFunc(groups.Groups, wrong)
}
