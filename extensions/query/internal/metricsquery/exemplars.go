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

// readExemplars is the maximum number of exemplars whose spans are read because the labels of their
// series depend on more than service and name.
const readExemplars = 20

// addExemplars adds exemplars to series: spans that the sample at their time counts. Series by
// fields of the trace have none.
func (r *run) addExemplars(s *traceql.MetricsStage, list []Series) error {
	if r.exemplars == 0 || r.Hint("exemplars") == "false" || s.Function == traceql.MetricsHistogram || s.Function == traceql.MetricsQuantile {
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
	read := false
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
	index := make(map[string]*Series, len(list))
	numeric := make(map[string]bool) // labels that have numbers
	for i := range list {
		index[keyOf(list[i].Labels)] = &list[i]
		for _, l := range list[i].Labels {
			numeric[l.Key] = numeric[l.Key] || l.Value.Kind() == otlpdata.ValueInt || l.Value.Kind() == otlpdata.ValueDouble
		}
	}
	for i := range found.Exemplars {
		e := &found.Exemplars[i]
		var values []tracestore.GroupValue
		if !read {
			values = valuesOf(s.By, tracestore.Span{Resource: &otlpdata.Resource{Service: e.Service}, Span: &otlpdata.Span{Name: e.Name}})
		} else if values, err = r.readValues(s.By, e); err != nil {
			return err
		}
		var labels []Label
		for i, v := range values {
			f := s.By[i]
			labels = append(labels, Label{f.Text, typedValue(f.Field, v, numeric[f.Text])})
		}
		if of := index[keyOf(labels)]; of != nil {
			if e := r.exemplar(s, of, e, labels); !math.IsNaN(e.Value) {
				of.Exemplars = append(of.Exemplars, e)
			}
		}
	}
	return nil
}

// valuesOf returns the first value of each field in a span.
func valuesOf(by []traceql.MetricsField, s tracestore.Span) []tracestore.GroupValue {
	out := make([]tracestore.GroupValue, len(by))
	for i, f := range by {
		for v := range f.Values(s) {
			out[i] = tracestore.GroupValue{Text: strings.Clone(storequery.FacetText(v.AsString())), Present: true}
			break
		}
	}
	return out
}

// readValues is like valuesOf, but reads the span of an exemplar. It returns nil if that is not
// possible.
func (r *run) readValues(by []traceql.MetricsField, e *tracestore.Exemplar) (out []tracestore.GroupValue, _ error) {
	pieces, _, err := r.slot.SelectSpans(tracestore.TraceRef{ID: e.TraceID}, map[otlpdata.SpanID]struct{}{e.SpanID: {}})
	if err != nil {
		return nil, r.slot.Context().Err()
	}
	for _, b := range pieces {
		err := tracestore.WalkSpans(b, func(s tracestore.Span) error {
			if s.SpanID == e.SpanID && s.Start == e.Start && out == nil {
				out = valuesOf(by, s)
			}
			return nil
		})
		if err != nil {
			return nil, nil
		}
	}
	return out, nil
}

// exemplar returns an exemplar of a series. Its value is the value of the sample, or the duration
// of the span if the function measures durations, and NaN if there is no sample.
func (r *run) exemplar(s *traceql.MetricsStage, of *Series, e *tracestore.Exemplar, labels []Label) Exemplar {
	duration := time.Duration(min(e.Duration, uint64(1<<63-1)))
	out := Exemplar{Time: time.Unix(0, int64(e.Start)), Value: duration.Seconds()}
	out.Labels = append(append([]Label{{"trace:id", otlpdata.StringValue(shortID(e.TraceID))}}, labels...),
		Label{"duration", otlpdata.StringValue(duration.String())})
	at := 0
	if r.Step > 0 {
		at = int((out.Time.Sub(r.From) + r.Step - 1) / r.Step)
	}
	sample := noSample
	if at >= 0 && at < len(of.Samples) {
		sample = of.Samples[at]
	}
	if math.IsNaN(sample) || !s.Function.HasField() || s.Of.Place != tracestore.Duration {
		out.Value = sample
	}
	return out
}

// shortID returns a trace id without leading zeros.
func shortID(id otlpdata.TraceID) string {
	text := id.String()
	for len(text) > 1 && text[0] == '0' {
		text = text[1:]
	}
	return text
}
