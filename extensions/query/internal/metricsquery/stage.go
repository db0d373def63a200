package metricsquery

import (
	"cmp"
	"slices"
	"strconv"
	"time"
	"unsafe"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/httpapi"
	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// aggregation returns an aggregation of the spans of a set.
func (r *run) aggregation(set storequery.SpanSet, w core.Window) core.Aggregation {
	agg := core.Aggregation{Store: r.store, Window: w}
	var err error
	if agg.Where, err = httpapi.SpanCondition(set); err != nil {
		agg.Set = set // it depends on whole traces
	}
	return agg
}

// measureOf returns what groups must hold for a function.
func measureOf(f traceql.MetricsFunction) tracestore.Measure {
	switch {
	case isDistribution(f):
		return tracestore.MeasureDistribution
	case f.HasField():
		return tracestore.MeasureTotals
	}
	return tracestore.MeasureNone
}

// stage returns the series of a function.
func (r *run) stage(s *traceql.MetricsStage) ([]Series, error) {
	agg := r.aggregation(s.Set, r.window())
	agg.Spec.Groups = tracestore.GroupQuery{Limit: tracestore.MaxGroups, All: true, Step: r.Step, Of: s.Of.Field,
		Measure: measureOf(s.Function), Adjusted: r.Hint("extrapolate") == "true"}
	for _, f := range s.By {
		agg.Spec.Groups.By = append(agg.Spec.Groups.By, f.Field)
		agg.OfTrace = agg.OfTrace || f.OfTrace()
	}
	agg.OfTrace = agg.OfTrace || s.Of.OfTrace()
	found, err := r.slot.Aggregate(&agg)
	if err != nil {
		return nil, err
	}
	groups := found.Groups
	r.scanned += found.Scanned
	r.estimate(groups.Share, found.Reasons)
	if groups.Other > 0 {
		r.note(strconv.FormatUint(groups.Other, 10) + " spans of further series are not counted, because there are too many series")
	}
	slices.SortFunc(groups.Groups, func(a, b tracestore.Group) int { return cmp.Compare(b.Durations.Count(), a.Durations.Count()) })
	if len(s.By) == 0 && len(groups.Groups) == 0 {
		groups.Groups = []tracestore.Group{{}}
	}
	labels, err := r.labelsOf(s.By, groups.Groups)
	if err != nil {
		return nil, err
	}
	if err := r.slot.HoldMore(groupsMemory(groups.Groups)); err != nil {
		return nil, err
	}
	var out []Series
	for i := range groups.Groups {
		list := r.seriesOf(s, &groups.Groups[i], labels[i], groups.Share)
		if err := r.slot.HoldMore(int64(len(list)) * (seriesOverhead + 8*int64(len(r.times)))); err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	if err := r.addExemplars(s, out); err != nil {
		return nil, err
	}
	return out, nil
}

// seriesOverhead is the approximate size in bytes of a series without samples.
const seriesOverhead = 500

// groupsMemory returns the approximate size in bytes of groups.
func groupsMemory(groups []tracestore.Group) (bytes int64) {
	for i := range groups {
		g := &groups[i]
		bytes += int64(unsafe.Sizeof(*g)) + int64(8*len(g.Parts))
		for j := range g.Numbers {
			bytes += int64(unsafe.Sizeof(g.Numbers[j])) + int64(len(g.Numbers[j].Buckets))*int64(unsafe.Sizeof(tracestore.NumberBucket{}))
		}
	}
	return bytes
}

// seconds returns the length of the part of a sample in seconds.
func (r *run) seconds() float64 {
	if r.Step > 0 {
		return r.Step.Seconds()
	}
	return r.To.Sub(r.From).Seconds()
}

// unit returns the factor for numbers of a field: durations are in seconds.
func unit(f tracestore.Field) float64 {
	if f.Place.Info().Type == tracestore.DurationField {
		return 1 / float64(time.Second)
	}
	return 1
}

// seriesOf returns the series of a group.
func (r *run) seriesOf(s *traceql.MetricsStage, g *tracestore.Group, labels []Label, share float64) []Series {
	counts := g.Parts
	if r.Step == 0 {
		counts = []uint64{g.Durations.Count()}
	}
	numbers := g.Numbers
	if len(numbers) == 0 {
		numbers = make([]tracestore.Numbers, len(r.times))
	}
	if len(s.By) == 0 && !isDistribution(s.Function) {
		labels = []Label{{nameLabel, otlpdata.StringValue(string(s.Function))}}
	}
	one := Series{Labels: labels, Samples: make([]float64, len(r.times))}
	scale := unit(s.Of.Field)
	for i := range one.Samples {
		n, v := &numbers[i], &one.Samples[i]
		switch s.Function {
		case traceql.MetricsCount, traceql.MetricsRate:
			if i < len(counts) {
				*v = float64(counts[i]) / share
			}
			if s.Function == traceql.MetricsRate {
				*v /= r.seconds()
			}
			continue
		case traceql.MetricsSum:
			*v = n.Sum * scale / share
		case traceql.MetricsAvg:
			*v = n.Sum / float64(n.Count) * scale
		case traceql.MetricsMin:
			*v = n.Min * scale
		case traceql.MetricsMax:
			*v = n.Max * scale
		case traceql.MetricsQuantile:
			return quantilesOf(s, labels, numbers, scale)
		case traceql.MetricsHistogram:
			return histogramOf(labels, numbers, scale, share)
		}
		if n.Count == 0 {
			*v = noSample
		}
		*v = finite(*v)
	}
	return withoutEmpty([]Series{one})
}

// quantilesOf returns a series for each quantile. There are none without numbers.
func quantilesOf(s *traceql.MetricsStage, labels []Label, numbers []tracestore.Numbers, scale float64) (out []Series) {
	if !slices.ContainsFunc(numbers, func(n tracestore.Numbers) bool { return n.Count > 0 }) {
		return nil
	}
	for _, q := range s.Quantiles {
		one := Series{Labels: append(slices.Clip(labels), Label{"p", otlpdata.DoubleValue(q)}), Samples: make([]float64, len(numbers))}
		for i := range numbers {
			one.Samples[i] = numbers[i].Quantile(q) * scale
		}
		out = append(out, one)
	}
	return out
}

// histogramOf returns a series for each power of two that is the upper bound of numbers. The bounds
// of negative numbers are their lower bounds.
func histogramOf(labels []Label, numbers []tracestore.Numbers, scale, share float64) (out []Series) {
	index := make(map[int]int) // of series, by octave
	for i := range numbers {
		for _, b := range numbers[i].Buckets {
			octave := octaveOf(b.Bucket)
			at, known := index[octave]
			if !known {
				at = len(out)
				index[octave] = at
				bound := otlpdata.DoubleValue(bucketBound(b.Bucket, scale))
				out = append(out, Series{Labels: append(slices.Clip(labels), Label{"__bucket", bound}), Samples: make([]float64, len(numbers))})
			}
			out[at].Samples[i] += float64(b.Count) / share
		}
	}
	return out
}

// bucketBound returns the value of the label of the series to which a bucket belongs.
func bucketBound(bucket int, scale float64) float64 {
	return tracestore.NumberBucketEnd(octaveOf(bucket)) * scale
}

// octaveOf returns the last bucket of the octave to which a bucket belongs.
func octaveOf(bucket int) int {
	const n = tracestore.BucketsPerOctave
	if bucket < 0 {
		return -octaveOf(-bucket)
	}
	return (bucket + n - 1) / n * n
}

// labelsOf returns the labels of groups.
func (r *run) labelsOf(by []traceql.MetricsField, groups []tracestore.Group) ([][]Label, error) {
	out := make([][]Label, len(groups))
	for i, f := range by {
		looksLike := func(g tracestore.Group) bool { return core.LooksLikeNumber(g.Values[i].Text) }
		numeric, err := r.hasNumbers(f.Field, slices.ContainsFunc(groups, looksLike), r.slot.Limits().Aggregated)
		if err != nil {
			return nil, err
		}
		for j := range groups {
			out[j] = append(out[j], Label{f.Text, typedValue(f.Field, groups[j].Values[i], numeric)})
		}
	}
	return out, nil
}

// hasNumbers reports whether values of a field that look like numbers are numbers. It examines at
// most the given number of spans, and none if no value looks like a number.
func (r *run) hasNumbers(f tracestore.Field, looksLike bool, spans int) (bool, error) {
	if f.Key == "" || !looksLike {
		return false, nil
	}
	return r.slot.HasNumbers(f, r.window(), spans)
}

// typedValue returns the value of a label.
func typedValue(f tracestore.Field, v tracestore.GroupValue, numeric bool) otlpdata.Value {
	info := f.Place.Info()
	if !v.Present {
		return otlpdata.StringValue("nil")
	}
	switch info.Type {
	case tracestore.WordField:
		return otlpdata.StringValue(info.Shown(v.Text))
	case tracestore.DurationField:
		ns, err := strconv.ParseFloat(v.Text, 64)
		if err != nil {
			return otlpdata.StringValue(v.Text)
		}
		return otlpdata.StringValue(time.Duration(ns).String())
	}
	if f.Key == "" && info.Type != tracestore.NumberField {
		return otlpdata.StringValue(v.Text)
	}
	if v.Text == "true" || v.Text == "false" {
		return otlpdata.BoolValue(v.Text == "true")
	}
	if numeric || info.Type == tracestore.NumberField {
		n, err := strconv.ParseInt(v.Text, 10, 64)
		if number := otlpdata.IntValue(n); err == nil && number.AsString() == v.Text { // "007" is text
			return number
		}
		d, err := strconv.ParseFloat(v.Text, 64)
		if number := otlpdata.DoubleValue(d); err == nil && finite(d) == d && number.AsString() == v.Text {
			return number
		}
	}
	return otlpdata.StringValue(v.Text)
}
