package metricsquery

import (
	"cmp"
	"fmt"
	"maps"
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
	counts := comparison{run: r, fields: make(map[tracestore.Field]*comparedField)}
	for i := range r.times {
		w := r.window()
		if r.Step > 0 {
			w = core.Window{From: r.times[i].Add(1 - r.Step), To: r.times[i]}
		}
		selected, rest, err := r.sides(s, w)
		if err != nil {
			return nil, err
		}
		for side, facets := range [][]tracestore.Facet{inSelection: selected, inBaseline: rest} {
			if err := counts.add(i, side, facets); err != nil {
				return nil, err
			}
		}
	}
	return counts.series(s.Compare.Top)
}

// sides counts the values of all attributes in the selection and in the rest of the spans of a time
// range. The result has at least the values of compare(...) that are the most frequent ones of all
// samples, or says that it may lack some.
func (r *run) sides(s *traceql.MetricsStage, w core.Window) (selected, rest []tracestore.Facet, err error) {
	agg, c := r.aggregation(s.Set, w), &s.Compare
	agg.Parts = len(r.times)
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
	of.Spec.Facets = tracestore.FacetQuery{Values: c.Top}
	if len(r.times) > 1 { // a value that is frequent in all samples together may be less so in one
		of.Spec.Facets.Values = tracestore.MaxFacetValues
	}
	if selected, err = r.facets(of); err != nil {
		return nil, nil, err
	}
	of.Where = tracestore.And{agg.Where, tracestore.Not{Expr: where}}
	rest, err = r.facets(of)
	return selected, rest, err
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
		selected, rest = append(selected, one), append(rest, other)
	}
	return selected, rest, nil
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
	agg.Spec.Facets.All = true // "" is left out, however frequent it is
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
		// Values that occur once in a sample are not worth a note: there may be one for each span.
		if n := len(f.Values); len(r.times) > 1 && f.Distinct > n && f.Values[n-1].Count > 1 {
			r.note(fmt.Sprintf("rare values are left out of attributes with more than %d values in a sample", n))
		}
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

// The sides of a comparison.
const (
	inSelection = iota
	inBaseline
	numSides
)

// sideNames are the values of the label metaType.
var sideNames = [numSides]string{inSelection: "selection", inBaseline: "baseline"}

// comparison collects the counts of compare(...).
type comparison struct {
	*run
	fields map[tracestore.Field]*comparedField
}

// comparedField holds the counts of a field.
type comparedField struct {
	field tracestore.Field
	key   string // of the label
	sides [numSides]comparedSide
}

// comparedSide holds the samples of a field in one side.
type comparedSide struct {
	values map[string]*comparedValue
	spans  uint64    // with a value, in all samples
	totals []float64 // spans with a value, by sample
}

// comparedValue holds the samples of a value.
type comparedValue struct {
	text    string
	spans   uint64 // in all samples
	samples []float64
}

// valueOverhead is the approximate size in bytes of a comparedValue without its text and samples.
const valueOverhead = 150

// add adds the counts of one side to sample number at.
func (c *comparison) add(at, side int, facets []tracestore.Facet) error {
	var added int64 // bytes
	for i := range facets {
		f := &facets[i]
		key, ok := compareKey(f.Field)
		if !ok {
			continue
		}
		id := f.Field
		if id.Names != "" {
			id.Key = "" // sides and samples may show different names
		}
		of := c.fields[id]
		if of == nil {
			of = &comparedField{field: f.Field, key: key}
			for i := range of.sides {
				of.sides[i] = comparedSide{values: make(map[string]*comparedValue), totals: make([]float64, len(c.times))}
			}
			c.fields[id] = of
		} else if f.Field.IsNewer(of.field.Key) {
			of.field, of.key = f.Field, key
		}
		total, s := f.Spans, &of.sides[side]
		for _, v := range f.Values {
			if v.Text == "" && f.Field.Place.Info().Type == tracestore.TextField { // no value
				total -= min(v.Count, total)
				continue
			}
			if v.Count == 0 {
				continue
			}
			value := s.values[v.Text]
			if value == nil {
				value = &comparedValue{text: v.Text, samples: make([]float64, len(c.times))}
				s.values[v.Text] = value
				added += int64(valueOverhead + len(v.Text) + 8*len(c.times))
			}
			value.spans += v.Count
			value.samples[at] = float64(v.Count)
		}
		s.spans += total
		s.totals[at] = float64(total)
	}
	return c.slot.HoldMore(added)
}

// series returns the series of the most frequent values of each field. If there are too many, it
// leaves out whole fields, the least frequent ones, so that both sides have the same fields.
func (c *comparison) series(top int) (list []Series, _ error) {
	spans := func(f *comparedField) uint64 { return f.sides[inSelection].spans + f.sides[inBaseline].spans }
	fields := slices.SortedFunc(maps.Values(c.fields), func(a, b *comparedField) int {
		return cmp.Or(cmp.Compare(spans(b), spans(a)), cmp.Compare(a.field.Place, b.field.Place), strings.Compare(a.key, b.key))
	})
	fields = slices.DeleteFunc(fields, func(f *comparedField) bool { return spans(f) == 0 })
	values := make([][numSides][]*comparedValue, len(fields))
	size, shown := 0, 0
	for i, f := range fields {
		for side := range f.sides {
			values[i][side] = f.sides[side].mostFrequent(top)
			if size += len(values[i][side]); f.sides[side].spans > 0 {
				size++ // the total
			}
		}
		if size <= c.slot.Limits().MetricsSeries {
			shown = i + 1
		}
	}
	if shown < len(fields) {
		c.note(fmt.Sprintf("%d of %d attributes are compared (max_metrics_series); use more conditions or fewer values", shown, len(fields)))
	}
	looksLike, n := make([]bool, shown), 0
	for i := range looksLike {
		both := slices.Concat(values[i][inSelection], values[i][inBaseline])
		if looksLike[i] = slices.ContainsFunc(both, func(v *comparedValue) bool { return core.LooksLikeNumber(v.text) }); looksLike[i] {
			n++
		}
	}
	for i, f := range fields[:shown] {
		numeric, err := c.hasNumbers(f.field, looksLike[i], max(c.slot.Limits().Aggregated/max(n, 1), 1))
		if err != nil {
			return nil, err
		}
		for side, name := range sideNames {
			for _, v := range values[i][side] {
				value := typedValue(f.field, tracestore.GroupValue{Text: v.text, Present: true}, numeric)
				list = append(list, Series{Labels: []Label{{metaType, otlpdata.StringValue(name)}, {f.key, value}}, Samples: v.samples})
			}
			if of := &f.sides[side]; of.spans > 0 {
				labels := []Label{{metaType, otlpdata.StringValue(name + "_total")}, {f.key, otlpdata.StringValue("nil")}}
				list = append(list, Series{Labels: labels, Samples: of.totals})
			}
		}
	}
	return list, nil
}

// mostFrequent returns the values that most spans have in all samples.
func (s *comparedSide) mostFrequent(n int) []*comparedValue {
	list := slices.SortedFunc(maps.Values(s.values), func(a, b *comparedValue) int {
		return cmp.Or(cmp.Compare(b.spans, a.spans), strings.Compare(a.text, b.text))
	})
	return list[:min(n, len(list))]
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
