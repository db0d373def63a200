package metricsquery

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// maxCompareSteps is the maximum number of samples of compare(...), which counts the values of all
// attributes for each.
const maxCompareSteps = 12

// metaType is the key of the label that says what a series of compare(...) counts.
const metaType = "__meta_type"

// compareFields are the properties that compare(...) counts in addition to attributes.
var compareFields = []tracestore.Place{tracestore.Name, tracestore.Kind, tracestore.Status, tracestore.StatusMessage,
	tracestore.ScopeName, tracestore.ScopeVersion}

// compare returns the numbers of spans by value of each attribute, in the selection and the rest.
func (r *run) compare(s *traceql.MetricsStage) ([]Series, error) {
	counts := comparison{run: r, index: make(map[string]int)}
	for i := range r.times {
		w := r.window()
		if r.Step > 0 {
			w = core.Window{From: r.times[i].Add(1 - r.Step), To: r.times[i]}
		}
		selected, rest, err := r.sides(s, w)
		if err != nil {
			return nil, err
		}
		counts.add(i, "selection", selected)
		counts.add(i, "baseline", rest)
	}
	return counts.list, nil
}

// sides returns the most frequent values of all attributes in the selection and in the rest of the
// spans of a time range.
func (r *run) sides(s *traceql.MetricsStage, w core.Window) (selected, rest []tracestore.Facet, err error) {
	agg, c := r.aggregation(s.Set, w), &s.Compare
	selection := tracestore.Selection{}
	if c.To > 0 {
		selection.From, selection.To = time.Unix(0, int64(min(c.From, math.MaxInt64))), time.Unix(0, int64(min(c.To, math.MaxInt64)))
	}
	where, err := httpapi.SpanCondition(c.Selection)
	if err != nil || agg.Set != nil || selection.From.After(w.From) || c.To > 0 && selection.To.Before(w.To) {
		return r.bothSides(agg, s, selection)
	}
	of := agg
	of.Where = tracestore.And{agg.Where, where}
	if selected, err = r.frequent(of, c.Top); err != nil {
		return nil, nil, err
	}
	of.Where = tracestore.And{agg.Where, tracestore.Not{Expr: where}}
	rest, err = r.frequent(of, c.Top)
	return selected, rest, err
}

// frequent returns the most frequent values of all attributes.
func (r *run) frequent(agg core.Aggregation, values int) ([]tracestore.Facet, error) {
	agg.Spec.Facets = tracestore.FacetQuery{Values: values}
	return r.facets(agg)
}

// bothSides is like sides, but counts both sides together. It needs more memory, because any value
// may be frequent in one of them.
func (r *run) bothSides(
	agg core.Aggregation, s *traceql.MetricsStage, selection tracestore.Selection,
) (selected, rest []tracestore.Facet, _ error) {
	where, err := httpapi.SpanCondition(s.Compare.Selection)
	if selection.Where = where; err != nil { // it depends on whole traces
		agg.Selected = s.Compare.Selection
		if agg.Set == nil {
			agg.Set, agg.Where = storequery.Select{Where: agg.Where}, nil
		}
	}
	agg.Spec.Facets = tracestore.FacetQuery{Values: s.Compare.Top, All: true, Selection: &selection}
	all, err := r.facets(agg)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range all {
		one, other := f, f
		one.Spans, other.Spans = f.Selected, f.Spans-min(f.Selected, f.Spans)
		one.Values, other.Values = slices.Clone(f.Values), f.Values
		for i, v := range f.Values {
			one.Values[i].Count, other.Values[i].Count = v.Selected, v.Count-min(v.Selected, v.Count)
		}
		selected, rest = append(selected, mostFrequent(one, s.Compare.Top)), append(rest, mostFrequent(other, s.Compare.Top))
	}
	return selected, rest, nil
}

// mostFrequent returns a facet with only its most frequent values.
func mostFrequent(f tracestore.Facet, n int) tracestore.Facet {
	slices.SortFunc(f.Values, func(a, b tracestore.FacetValue) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Text, b.Text))
	})
	f.Values = f.Values[:min(n, len(f.Values))]
	return f
}

// facets counts the values of attributes and properties.
func (r *run) facets(agg core.Aggregation) ([]tracestore.Facet, error) {
	list, err := r.count(&agg)
	if err != nil {
		return nil, err
	}
	for _, p := range []tracestore.Place{tracestore.StatusMessage, tracestore.ScopeName, tracestore.ScopeVersion} {
		agg.Spec.Facets.Fields = append(agg.Spec.Facets.Fields, tracestore.Field{Place: p})
	}
	agg.Spec.Facets.Values = max(agg.Spec.Facets.Values, 2) // "" is left out
	more, err := r.count(&agg)
	return append(list, more...), err
}

// count counts the values of facets. They are estimates if the store examines a sample.
func (r *run) count(agg *core.Aggregation) ([]tracestore.Facet, error) {
	found, err := r.slot.Aggregate(agg)
	if err != nil {
		return nil, err
	}
	r.scanned += found.Scanned
	share := found.Facets.Share
	r.estimate(share, found.Reasons)
	list := found.Facets.Facets
	for i := range list {
		f := &list[i]
		f.Spans, f.Selected = scaled(f.Spans, share), scaled(f.Selected, share)
		for j := range f.Values {
			v := &f.Values[j]
			v.Count, v.Selected = scaled(v.Count, share), scaled(v.Selected, share)
		}
	}
	return list, nil
}

// scaled returns the estimate for all spans.
func scaled(n uint64, share float64) uint64 { return uint64(math.Round(float64(n) / share)) }

// comparison collects the series of compare(...).
type comparison struct {
	*run
	list  []Series
	index map[string]int // in list, by labels
}

// add adds the counts of one side to sample number at.
func (c *comparison) add(at int, side string, facets []tracestore.Facet) {
	for i := range facets {
		f := &facets[i]
		key, ok := compareKey(f.Field)
		if !ok {
			continue
		}
		total := f.Spans
		for _, v := range f.Values {
			if v.Text == "" && f.Field.Place.Info().Type == tracestore.TextField { // no value
				total -= min(v.Count, total)
				continue
			}
			value := typedValue(f.Field, tracestore.GroupValue{Text: v.Text, Present: true}, f.Field.Key != "")
			c.set(at, side, key, value, v.Count)
		}
		c.set(at, side+"_total", key, otlpdata.StringValue("nil"), total)
	}
}

// set sets a sample. Series whose samples are all 0 are left out.
func (c *comparison) set(at int, name, key string, value otlpdata.Value, n uint64) {
	if n == 0 {
		return
	}
	labels := []Label{{metaType, otlpdata.StringValue(name)}, {key, value}}
	text := textOf(labels)
	i, known := c.index[text]
	if !known {
		i = len(c.list)
		c.index[text] = i
		c.list = append(c.list, Series{Labels: labels, Samples: make([]float64, len(c.times))})
	}
	c.list[i].Samples[at] = float64(n)
}

// compareKey returns the key of the label of a field. ok is false for fields that are not compared.
func compareKey(f tracestore.Field) (key string, ok bool) {
	switch {
	case f.Place == tracestore.SpanAttribute, f.Place == tracestore.ResourceAttribute:
		return f.Place.Info().Name + f.Key, true
	case slices.Contains(compareFields, f.Place):
		return f.Place.Info().Name, true
	}
	return "", false
}
