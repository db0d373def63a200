package metricsquery

import (
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
var compareFields = []tracestore.Place{tracestore.Name, tracestore.Kind, tracestore.Status, tracestore.StatusMessage}

// compare returns the numbers of spans by value of each attribute, in the selection and the rest.
func (r *run) compare(s *traceql.MetricsStage) ([]Series, error) {
	counts := comparison{run: r, top: s.Compare.Top, index: make(map[string]int)}
	for i := range r.times {
		w := r.window()
		if r.Step > 0 {
			w = core.Window{From: r.times[i].Add(1 - r.Step), To: r.times[i]}
		}
		facets, err := r.facets(s, w)
		if err != nil {
			return nil, err
		}
		for j := range facets {
			counts.add(i, &facets[j])
		}
	}
	return counts.list, nil
}

// facets counts the values of all attributes in a part of the time range.
func (r *run) facets(s *traceql.MetricsStage, w core.Window) ([]tracestore.Facet, error) {
	agg := r.aggregation(s.Set, w)
	selection := &tracestore.Selection{}
	if c := &s.Compare; c.To > 0 {
		selection.From, selection.To = time.Unix(0, int64(min(c.From, math.MaxInt64))), time.Unix(0, int64(min(c.To, math.MaxInt64)))
	}
	where, err := httpapi.SpanCondition(s.Compare.Selection)
	if err == nil {
		selection.Where = where
	} else {
		agg.Selected = s.Compare.Selection
		if agg.Set == nil {
			agg.Set, agg.Where = storequery.Select{Where: agg.Where}, nil
		}
	}
	agg.Spec.Facets = tracestore.FacetQuery{Values: s.Compare.Top, All: true, Selection: selection}
	found, err := r.slot.Aggregate(&agg)
	if err != nil {
		return nil, err
	}
	r.scanned += found.Scanned
	r.estimate(found.Facets.Share, found.Reasons)
	list := found.Facets.Facets
	for i := range list {
		f := &list[i]
		f.Spans, f.Selected = scaled(f.Spans, found.Facets.Share), scaled(f.Selected, found.Facets.Share)
		for j := range f.Values {
			v := &f.Values[j]
			v.Count, v.Selected = scaled(v.Count, found.Facets.Share), scaled(v.Selected, found.Facets.Share)
		}
	}
	return list, nil
}

// scaled returns the estimate for all spans.
func scaled(n uint64, share float64) uint64 { return uint64(math.Round(float64(n) / share)) }

// comparison collects the series of compare(...).
type comparison struct {
	*run
	top   int
	list  []Series
	index map[string]int // in list, by labels
}

// add adds the counts of a field to sample number at.
func (c *comparison) add(at int, f *tracestore.Facet) {
	key, ok := compareKey(f.Field)
	if !ok {
		return
	}
	numeric := f.Field.Key != ""
	c.set(at, "selection_total", key, otlpdata.StringValue("nil"), f.Selected)
	c.set(at, "baseline_total", key, otlpdata.StringValue("nil"), f.Spans-f.Selected)
	for _, one := range []struct {
		name  string
		count func(v tracestore.FacetValue) uint64
	}{
		{"selection", func(v tracestore.FacetValue) uint64 { return v.Selected }},
		{"baseline", func(v tracestore.FacetValue) uint64 { return v.Count - min(v.Selected, v.Count) }},
	} {
		slices.SortFunc(f.Values, func(a, b tracestore.FacetValue) int {
			if na, nb := one.count(a), one.count(b); na != nb {
				if na > nb {
					return -1
				}
				return 1
			}
			return strings.Compare(a.Text, b.Text)
		})
		for _, v := range f.Values[:min(c.top, len(f.Values))] {
			value := typedValue(f.Field, tracestore.GroupValue{Text: v.Text, Present: true}, numeric)
			c.set(at, one.name, key, value, one.count(v))
		}
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
