// Package aggregates adds up the results of [tracestore.Aggregator] for different spans, and counts
// attributes with several names.
package aggregates

import (
	"cmp"
	"slices"
	"strings"
	"unsafe"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Add adds results of the same aggregation for different spans, for example of several stores.
// Each must have all values and groups; see FacetQuery.All and GroupQuery.All. The sum has the
// order and the limits that the aggregation requests. If shares of the spans were examined, the
// counts are reduced to the lowest share. Add modifies the parts. memory is charged for the sum;
// callers charge the Size of each part.
func Add(
	q tracestore.Query, a tracestore.Aggregation, parts []*tracestore.Aggregate, memory *tracestore.Memory,
) (out tracestore.Aggregate) {
	var missing tracestore.Reasons
	for _, p := range parts {
		missing.Add(p.Reasons...)
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
	return out
}

// Size returns the approximate memory of a result in bytes.
func Size(p *tracestore.Aggregate) (n int64) {
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

// sameField holds the counts of all parts for one field.
type sameField struct {
	field    tracestore.Field
	spans    uint64
	distinct int // upper bound of the number of values
	facets   []*tracestore.Facet
}

// addFacets adds the facets of all parts. If not all of them can be counted, it prefers fields that
// occur in many spans, and values that are frequent in one of the parts.
func addFacets(to *storequery.FacetCounter, parts []*tracestore.Aggregate) *tracestore.Facets {
	index := make(map[tracestore.Field]*sameField)
	var fields []*sameField
	size := int64(0)
	for _, p := range parts {
		to.AddTotal(p.Facets.Spans, p.Facets.Selected)
		size += Size(&tracestore.Aggregate{Facets: p.Facets})
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
	most := 0 // of one part; the others share many of them
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
// have many spans in one of the parts.
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
