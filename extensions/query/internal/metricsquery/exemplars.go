package metricsquery

import (
	"math"
	"strings"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Exemplar is an example of the spans of a sample.
type Exemplar struct {
	Labels []Label
	Value  float64
	Time   time.Time
}

// exemplarSpans is the maximum number of spans that are examined to find exemplars.
const exemplarSpans = 100_000

// readExemplars is the maximum number of exemplars whose spans are read because their series depend
// on more than service, name and duration.
const readExemplars = 20

// isDistribution reports whether a function has several series for each group: for quantiles, or
// for the buckets of a histogram. The last label distinguishes them.
func isDistribution(f traceql.MetricsFunction) bool {
	return f == traceql.MetricsQuantile || f == traceql.MetricsHistogram
}

// addExemplars adds exemplars to series: spans that the sample at their time counts. Series by
// fields of the trace, and distributions of such fields, have none.
func (r *run) addExemplars(s *traceql.MetricsStage, list []Series) error {
	if r.exemplars == 0 || r.Hint("exemplars") == "false" || isDistribution(s.Function) && s.Of.OfTrace() {
		return nil
	}
	agg := r.aggregation(s.Set, r.window())
	agg.Spec.Exemplars, agg.MaxSpans = r.exemplars, exemplarSpans
	if s.Function.HasField() && s.Of.Place.HasKey() {
		number := core.HasNumber(s.Of.Field)
		if agg.Where != nil {
			number = tracestore.And{agg.Where, number}
		}
		agg.Where = number
	}
	read := isDistribution(s.Function) && s.Of.Place != tracestore.Duration
	for _, f := range s.By {
		if f.OfTrace() {
			return nil
		}
		read = read || f.Place != tracestore.Service && f.Place != tracestore.Name
	}
	if read {
		agg.Spec.Exemplars = min(agg.Spec.Exemplars, readExemplars)
	}
	found, err := r.slot.Aggregate(&agg)
	if err != nil {
		return err
	}
	index := make(map[string][]*Series, len(list)) // by the labels of the group
	numeric := make(map[string]bool)               // labels that have numbers
	for i := range list {
		labels := list[i].Labels
		for _, l := range labels {
			numeric[l.Key] = numeric[l.Key] || l.Value.Kind() == otlpdata.ValueInt || l.Value.Kind() == otlpdata.ValueDouble
		}
		if isDistribution(s.Function) {
			labels = labels[:len(labels)-1]
		}
		index[keyOf(labels)] = append(index[keyOf(labels)], &list[i])
	}
	for i := range found.Exemplars {
		e := &found.Exemplars[i]
		var values *exemplarValues
		if !read {
			span := otlpdata.Span{Name: e.Name, End: e.Duration}
			values = valuesOf(s, tracestore.Span{Resource: &otlpdata.Resource{Service: e.Service}, Span: &span})
		} else if values, err = r.readValues(s, e); err != nil {
			return err
		}
		if values == nil {
			continue
		}
		var labels []Label
		for i, v := range values.by {
			f := s.By[i]
			labels = append(labels, Label{f.Text, typedValue(f.Field, v, numeric[f.Text])})
		}
		if of := r.seriesOfExemplar(s, index[keyOf(labels)], e, values.of); of != nil {
			if e := r.exemplar(s, of, e, labels, values.of); !math.IsNaN(e.Value) {
				of.Exemplars = append(of.Exemplars, e)
			}
		}
	}
	return nil
}

// exemplarValues are the values of a span for the fields of a function: those in by, and for a
// distribution the measured number, which is NaN if there is none.
type exemplarValues struct {
	by []tracestore.GroupValue
	of float64
}

// valuesOf returns the first values of a span.
func valuesOf(s *traceql.MetricsStage, span tracestore.Span) *exemplarValues {
	out := &exemplarValues{make([]tracestore.GroupValue, len(s.By)), math.NaN()}
	for i, f := range s.By {
		for v := range f.Values(span) {
			out.by[i] = tracestore.GroupValue{Text: strings.Clone(storequery.FacetText(v.AsString())), Present: true}
			break
		}
	}
	if isDistribution(s.Function) {
		if n, ok := tracestore.NumberOf(s.Of.Field, span); ok {
			out.of = n
		}
	}
	return out
}

// seriesOfExemplar returns the series of a group that an exemplar belongs to: of a histogram, the
// one of its bucket; of quantiles, the one whose sample at its time is nearest. It returns nil if
// there is none.
func (r *run) seriesOfExemplar(s *traceql.MetricsStage, group []*Series, e *tracestore.Exemplar, number float64) (of *Series) {
	switch {
	case isDistribution(s.Function) && math.IsNaN(number):
	case s.Function == traceql.MetricsHistogram:
		bound := bucketBound(tracestore.NumberBucketOf(number), unit(s.Of.Field))
		for _, one := range group {
			if one.Labels[len(one.Labels)-1].Value.Double() == bound {
				return one
			}
		}
	case s.Function == traceql.MetricsQuantile:
		nearest := math.Inf(1)
		for _, one := range group {
			if d := math.Abs(r.sampleAt(one, e) - number*unit(s.Of.Field)); d < nearest {
				of, nearest = one, d
			}
		}
	case len(group) > 0:
		return group[0]
	}
	return of
}

// readValues is like valuesOf, but reads the span of an exemplar. It returns nil if that is not
// possible.
func (r *run) readValues(s *traceql.MetricsStage, e *tracestore.Exemplar) (out *exemplarValues, _ error) {
	pieces, _, err := r.slot.SelectSpans(tracestore.TraceRef{ID: e.TraceID}, map[otlpdata.SpanID]struct{}{e.SpanID: {}})
	if err != nil {
		return nil, r.slot.Context().Err()
	}
	for _, b := range pieces {
		err := tracestore.WalkSpans(b, func(span tracestore.Span) error {
			if span.SpanID == e.SpanID && span.Start == e.Start && out == nil {
				out = valuesOf(s, span)
			}
			return nil
		})
		if err != nil {
			return nil, nil
		}
	}
	return out, nil
}

// exemplar returns an exemplar of a series. Its value is the value of the sample, or the number of
// the span if the samples are durations or quantiles, and NaN if there is no sample.
func (r *run) exemplar(s *traceql.MetricsStage, of *Series, e *tracestore.Exemplar, labels []Label, number float64) Exemplar {
	duration := time.Duration(min(e.Duration, uint64(1<<63-1)))
	out := Exemplar{Time: time.Unix(0, int64(e.Start)), Value: duration.Seconds()}
	out.Labels = append(append([]Label{{"trace:id", otlpdata.StringValue(shortID(e.TraceID))}}, labels...),
		Label{"duration", otlpdata.StringValue(duration.String())})
	sample := r.sampleAt(of, e)
	switch {
	case math.IsNaN(sample), !s.Function.HasField(), s.Function == traceql.MetricsHistogram:
		out.Value = sample
	case s.Function == traceql.MetricsQuantile:
		out.Value = number * unit(s.Of.Field)
	case s.Of.Place != tracestore.Duration:
		out.Value = sample
	}
	return out
}

// sampleAt returns the sample of a series that counts an exemplar, or NaN.
func (r *run) sampleAt(of *Series, e *tracestore.Exemplar) float64 {
	at := 0
	if r.Step > 0 {
		at = int((time.Unix(0, int64(e.Start)).Sub(r.From) + r.Step - 1) / r.Step)
	}
	if at < 0 || at >= len(of.Samples) {
		return noSample
	}
	return of.Samples[at]
}

// shortID returns a trace id without leading zeros.
func shortID(id otlpdata.TraceID) string {
	text := id.String()
	for len(text) > 1 && text[0] == '0' {
		text = text[1:]
	}
	return text
}
