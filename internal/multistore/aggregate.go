package multistore

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unsafe"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
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
//     share; see thinAggregates. Share is the sum of the counts divided by the sum of the estimates
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
		missing.Add(p.Of(name)...)
		if err := memory.Grow(sizeOf(p)); err != nil {
			return out, err
		}
		parts = append(parts, p)
	}
	totals, facets, groups := sharesOf(parts)
	thinAggregates(parts, totals, facets, groups)
	out.Share, out.RelativeError = 1, totals.relativeError()
	for _, p := range parts {
		out.Spans += p.Spans
		out.Errors += p.Errors
		out.Scanned += p.Scanned
	}
	if a.Heatmap.Step > 0 {
		counter := storequery.NewHeatmapCounter(q, a.Heatmap)
		out.Spans, out.Errors = addHeatmaps(counter, parts)
		out.Heatmap = counter.Answer(totals.merged(out.Spans))
	}
	if a.Facets.Values > 0 {
		counter := storequery.NewFacetCounter(a.Facets)
		counter.ChargeTo(memory)
		out.Facets = addFacets(counter, parts)
		out.Facets.Share = facets.merged(out.Facets.Spans)
		if counter.OutOfMemory() {
			missing.Add(storequery.ReasonFacetMemory)
		}
	}
	if a.Groups.Requested() {
		counter := storequery.NewGroupCounter(q, a.Groups)
		counter.ChargeTo(memory)
		out.Groups = addGroups(counter, parts)
		out.Groups.Share = groups.merged(out.Groups.All.Durations.Count())
		if counter.OutOfMemory() {
			missing.Add(storequery.ReasonGroupMemory)
		}
	}
	switch {
	case out.Heatmap != nil:
		out.Share = out.Heatmap.Share
	case out.Facets != nil:
		out.Spans, out.Share = out.Facets.Spans, out.Facets.Share
	case out.Groups != nil && !a.Groups.Adjusted: // adjusted counts are of spans that were not stored
		out.Spans, out.Errors, out.Share = out.Groups.All.Durations.Count(), out.Groups.All.Errors, out.Groups.Share
	default:
		out.Share = totals.merged(out.Spans)
	}
	if a.Exemplars > 0 {
		out.Exemplars = pick(a.Exemplars, parts)
	}
	out.Errors = min(out.Errors, out.Spans)
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

// sizeOf returns the approximate memory of a result in bytes.
func sizeOf(p *tracestore.Aggregate) (n int64) {
	if p.Heatmap != nil {
		n += int64(len(p.Heatmap.Cells)) * int64(unsafe.Sizeof(tracestore.HeatCell{}))
	}
	if p.Facets != nil {
		for i := range p.Facets.Facets {
			for _, v := range p.Facets.Facets[i].Values {
				n += int64(unsafe.Sizeof(v)) + int64(len(v.Text))
			}
		}
	}
	if p.Groups != nil {
		for i := range p.Groups.Groups {
			g := &p.Groups.Groups[i]
			_, counts := g.Durations.Counts()
			n += int64(unsafe.Sizeof(*g)) + int64(8*len(counts)+8*len(g.Parts))
			for _, v := range g.Values {
				n += int64(len(v.Text))
			}
			for _, v := range g.Numbers {
				n += int64(unsafe.Sizeof(v)) + int64(len(v.Buckets))*int64(unsafe.Sizeof(tracestore.NumberBucket{}))
			}
		}
	}
	return n
}

// addHeatmaps adds the heatmaps of all parts, and returns the totals.
func addHeatmaps(to *storequery.HeatmapCounter, parts []*tracestore.Aggregate) (spans, errors uint64) {
	for _, p := range parts {
		for _, c := range p.Heatmap.Cells {
			to.AddSpans(c.Start, c.Bucket, c.Count, c.Errors)
			spans += c.Count
			errors += c.Errors
		}
	}
	return spans, errors
}

// pick returns exemplars of all parts.
func pick(want int, parts []*tracestore.Aggregate) []tracestore.Exemplar {
	picker := storequery.NewExemplarPicker(want)
	for _, p := range parts {
		for _, e := range p.Exemplars {
			picker.Offer(e)
		}
	}
	return picker.Answer()
}

// sameField holds the counts of all stores for one field.
type sameField struct {
	field    tracestore.Field
	spans    uint64
	distinct int // upper bound of the number of values
	facets   []*tracestore.Facet
}

// addFacets adds the facets of all parts. If not all of them can be counted, it prefers fields that
// occur in many spans, and values that are frequent in one of the stores.
func addFacets(to *storequery.FacetCounter, parts []*tracestore.Aggregate) *tracestore.Facets {
	index := make(map[tracestore.Field]*sameField)
	var fields []*sameField
	size := int64(0)
	for _, p := range parts {
		to.AddTotal(p.Facets.Spans, p.Facets.Selected)
		size += sizeOf(&tracestore.Aggregate{Facets: p.Facets})
		for i := range p.Facets.Facets {
			f := &p.Facets.Facets[i]
			same := index[f.Field]
			if same == nil {
				same = &sameField{field: f.Field}
				index[f.Field] = same
				fields = append(fields, same)
			}
			same.spans += f.Spans
			same.distinct += len(f.Values)
			same.facets = append(same.facets, f)
		}
	}
	slices.SortFunc(fields, func(a, b *sameField) int {
		return cmp.Or(cmp.Compare(b.spans, a.spans), cmp.Compare(a.field.Place, b.field.Place), cmp.Compare(a.field.Key, b.field.Key))
	})
	for _, same := range fields {
		if c := to.Field(same.field); c != nil {
			same.addTo(c, size > storequery.MaxFacetMemory)
		}
	}
	return to.Answer(1)
}

// addTo adds the counts of a field. The order of values matters only if a limit may be reached.
func (f *sameField) addTo(c *storequery.FieldCounter, limited bool) {
	for _, one := range f.facets {
		c.AddSpans(one.Spans, one.Selected)
		c.AddOther(one.Other)
	}
	if limited || f.distinct > storequery.MaxFacetDistinct {
		all := &tracestore.Facet{}
		for _, one := range f.facets {
			all.Values = append(all.Values, one.Values...)
		}
		slices.SortFunc(all.Values, func(a, b tracestore.FacetValue) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Text, b.Text))
		})
		f.facets = []*tracestore.Facet{all}
	}
	most := 0 // of one store; the others share many of them
	for _, one := range f.facets {
		most = max(most, len(one.Values))
	}
	c.Expect(most)
	for _, one := range f.facets {
		for _, v := range one.Values {
			c.AddValue(v.Text, v.Count, v.Selected)
		}
	}
}

// addGroups adds the groups of all parts. If not all of them can be counted, it prefers groups that
// have many spans in one of the stores.
func addGroups(to *storequery.GroupCounter, parts []*tracestore.Aggregate) *tracestore.Groups {
	var all []*tracestore.Group
	for _, p := range parts {
		to.AddTotal(&p.Groups.All)
		to.AddOther(p.Groups.Other)
		for i := range p.Groups.Groups {
			all = append(all, &p.Groups.Groups[i])
		}
	}
	if len(all) > storequery.MaxGroupsCounted {
		slices.SortFunc(all, func(a, b *tracestore.Group) int {
			return cmp.Or(cmp.Compare(b.Durations.Count(), a.Durations.Count()), compareGroups(a, b))
		})
	}
	for _, g := range all {
		to.AddGroup(g)
	}
	return to.Answer(1)
}

// compareGroups orders groups by their values.
func compareGroups(a, b *tracestore.Group) int {
	for i := range a.Values {
		if c := strings.Compare(a.Values[i].Text, b.Values[i].Text); c != 0 {
			return c
		}
		if a.Values[i].Present != b.Values[i].Present {
			if b.Values[i].Present {
				return -1
			}
			return 1
		}
	}
	return 0
}
