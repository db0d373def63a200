package aggregates

import (
	"math"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// shares describes a count of each part: how many of the examined spans matched, the share of all
// spans that was examined, and the relative error.
type shares []sampled

type sampled struct {
	count        uint64
	share, error float64
}

// add adds a count. An invalid share counts as 1.
func (s *shares) add(count uint64, share, relativeError float64) {
	if !(share > 0 && share < 1) {
		share, relativeError = 1, 0
	}
	if !(relativeError >= 0 && relativeError <= 1) {
		relativeError = 1
	}
	*s = append(*s, sampled{count, share, relativeError})
}

// sharesOf returns the counts of the totals, facets and groups of parts.
func sharesOf(parts []*tracestore.Aggregate) (totals, facets, groups shares) {
	for _, p := range parts {
		totals.add(p.Spans, p.Share, p.RelativeError)
		if p.Facets != nil {
			facets.add(p.Facets.Spans, p.Facets.Share, 0)
		}
		if p.Groups != nil {
			groups.add(p.Groups.All.Durations.Count(), p.Groups.Share, 0)
		}
	}
	return totals, facets, groups
}

// lowest returns the lowest share among counts above 0, or 1.
func (s shares) lowest() float64 {
	low := 1.0
	for _, one := range s {
		if one.count > 0 {
			low = min(low, one.share)
		}
	}
	return low
}

// factors returns the factor for the counts of each part that reduces them to the lowest share. It
// is exactly 1 for equal shares.
func (s shares) factors() []float64 {
	low, out := s.lowest(), make([]float64, len(s))
	for i, one := range s {
		out[i] = min(low/one.share, 1)
	}
	return out
}

// estimate returns the estimated number of all matching spans.
func (s shares) estimate() (sum float64) {
	for _, one := range s {
		sum += float64(one.count) / one.share
	}
	return sum
}

// merged returns the share for a count of all parts, which is the sum of counts that were
// multiplied by factors: the count divided by the share is the estimate. It is 1 only if all spans
// of all parts were examined.
func (s shares) merged(count uint64) float64 {
	low := 1.0 // including parts without matching spans
	for _, one := range s {
		low = min(low, one.share)
	}
	estimate := s.estimate()
	switch {
	case low == 1:
		return 1
	case count == 0 || estimate == 0:
		return low
	}
	return min(float64(count)/estimate, math.Nextafter(1, 0))
}

// relativeError returns the relative standard error of the estimate: the errors of the parts are
// independent, so that their squares add up. A part without matching spans in its sample may have
// about as many as one examined span stands for.
func (s shares) relativeError() float64 {
	squares, sampled := 0.0, false
	for _, one := range s {
		if one.share == 1 {
			continue
		}
		sampled = true
		deviation := float64(one.count) * one.error / one.share
		if one.count == 0 {
			deviation = 1 / one.share
		}
		squares += deviation * deviation
	}
	switch estimate := s.estimate(); {
	case !sampled:
		return 0
	case estimate == 0:
		return 1
	default:
		return min(math.Sqrt(squares)/estimate, 1)
	}
}

// thinAggregates reduces the counts of parts as if the same share of each part had been examined:
// the lowest share, separately for totals, facets and groups. Without that, values that are
// frequent in a part with a high share would seem to be more frequent everywhere. Rounding
// preserves the sum of the counts, so that one of several values with low counts remains. Only
// counts of parts with a higher share change.
func thinAggregates(parts []*tracestore.Aggregate, totals, facets, groups shares) {
	for i, factor := range totals.factors() {
		p, all, failed := parts[i], newRounder(factor), newRounder(factor)
		p.Spans, p.Errors = all.take(p.Spans), failed.take(p.Errors)
		if p.Heatmap != nil {
			thinHeatmap(p.Heatmap, factor)
		}
	}
	for i, factor := range facets.factors() {
		thinFacets(parts[i].Facets, factor)
	}
	for i, factor := range groups.factors() {
		thinGroups(parts[i].Groups, factor)
	}
}

// rounder multiplies counts by a factor, and rounds the results up or down so that their sum is
// right within 1.
type rounder struct{ factor, carry float64 }

func newRounder(factor float64) *rounder { return &rounder{factor, 0.5} }

func (r *rounder) take(n uint64) uint64 {
	if r.factor == 1 {
		return n // exact, also for numbers that a float64 cannot represent
	}
	whole, carry := math.Modf(float64(n)*r.factor + r.carry)
	r.carry = carry
	return uint64(whole)
}

// up returns a count multiplied by a factor and rounded up. take never returns more for a part of
// the count.
func up(n uint64, factor float64) uint64 {
	if factor == 1 {
		return n
	}
	return uint64(math.Ceil(float64(n) * factor))
}

func thinHeatmap(h *tracestore.Heatmap, factor float64) {
	if factor == 1 {
		return
	}
	other, failed := newRounder(factor), newRounder(factor)
	for i := range h.Cells {
		c := &h.Cells[i]
		errors := failed.take(min(c.Errors, c.Count))
		c.Count, c.Errors = errors+other.take(c.Count-min(c.Errors, c.Count)), errors
	}
	h.Cells = slices.DeleteFunc(h.Cells, func(c tracestore.HeatCell) bool { return c.Count == 0 })
}

func thinFacets(f *tracestore.Facets, factor float64) {
	if factor == 1 {
		return
	}
	f.Spans, f.Selected = upBoth(f.Spans, f.Selected, factor)
	for i := range f.Facets {
		one := &f.Facets[i]
		one.Spans, one.Selected = upBoth(one.Spans, one.Selected, factor)
		one.Other = up(one.Other, factor)
		slices.SortFunc(one.Values, func(a, b tracestore.FacetValue) int { return strings.Compare(a.Text, b.Text) })
		rest, chosen := newRounder(factor), newRounder(factor)
		for j := range one.Values {
			v := &one.Values[j]
			selected := chosen.take(min(v.Selected, v.Count))
			v.Count, v.Selected = selected+rest.take(v.Count-min(v.Selected, v.Count)), selected
		}
		one.Values = slices.DeleteFunc(one.Values, func(v tracestore.FacetValue) bool { return v.Count == 0 })
	}
}

// upBoth applies up to the selected and the other spans, and returns their sum and the selected
// ones.
func upBoth(spans, selected uint64, factor float64) (uint64, uint64) {
	selected = min(selected, spans)
	chosen := up(selected, factor)
	return chosen + up(spans-selected, factor), chosen
}

func thinGroups(g *tracestore.Groups, factor float64) {
	if factor == 1 {
		return
	}
	thinGroup(&g.All, factor, newRounder(factor), newRounder(factor))
	g.Other = up(g.Other, factor)
	slices.SortFunc(g.Groups, func(a, b tracestore.Group) int { return compareGroups(&a, &b) })
	spans, failed := newRounder(factor), newRounder(factor)
	for i := range g.Groups {
		thinGroup(&g.Groups[i], factor, spans, failed)
	}
	g.Groups = slices.DeleteFunc(g.Groups, func(g tracestore.Group) bool { return g.Durations.Count() == 0 })
}

func thinGroup(g *tracestore.Group, factor float64, spans, failed *rounder) {
	var kept tracestore.Histogram
	first, counts := g.Durations.Counts()
	for i, n := range counts {
		if n = spans.take(n); n > 0 {
			kept.AddBucket(first+i, n)
		}
	}
	kept.Sum = uint64(float64(g.Durations.Sum) * factor)
	g.Durations = kept
	g.Errors = min(failed.take(g.Errors), kept.Count())
	parts := newRounder(factor)
	for i, n := range g.Parts {
		g.Parts[i] = parts.take(n)
	}
	numbers := newRounder(factor)
	for i := range g.Numbers {
		thinNumbers(&g.Numbers[i], factor, numbers)
	}
}

func thinNumbers(n *tracestore.Numbers, factor float64, counts *rounder) {
	if len(n.Buckets) == 0 {
		n.Count = counts.take(n.Count)
	} else {
		n.Count = 0
		for i := range n.Buckets {
			b := &n.Buckets[i]
			b.Count = counts.take(b.Count)
			n.Count += b.Count
		}
		n.Buckets = slices.DeleteFunc(n.Buckets, func(b tracestore.NumberBucket) bool { return b.Count == 0 })
	}
	n.Sum *= factor
}
