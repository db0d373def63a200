package metricsquery

import (
	"time"

	"github.com/tracing-backend/tracing/internal/traceql"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Exemplar is an example of the spans of a sample.
type Exemplar struct {
	Labels []Label
	Value  float64
	Time   time.Time
}

// exemplarSpans is the maximum number of spans that are examined to find exemplars.
const exemplarSpans = 100_000

// addExemplars adds exemplars to series whose spans are determined by their services and names.
// Other series have none.
func (r *run) addExemplars(s *traceql.MetricsStage, list []Series) error {
	if r.Exemplars == 0 || r.Hint("exemplars") == "false" || s.Function == traceql.MetricsHistogram || s.Function == traceql.MetricsQuantile {
		return nil
	}
	for _, f := range s.By {
		if f.Place != tracestore.Service && f.Place != tracestore.Name {
			return nil
		}
	}
	agg := r.aggregation(s.Set, r.window())
	agg.Spec.Exemplars, agg.MaxSpans = min(r.Exemplars, MaxExemplars), exemplarSpans
	found, err := r.slot.Aggregate(&agg)
	if err != nil {
		return err
	}
	index := make(map[string]*Series, len(list))
	for i := range list {
		index[keyOf(list[i].Labels)] = &list[i]
	}
	for i := range found.Exemplars {
		e := &found.Exemplars[i]
		var labels []Label
		for _, f := range s.By {
			value := e.Service
			if f.Place == tracestore.Name {
				value = e.Name
			}
			labels = append(labels, Label{f.Text, otlpdata.StringValue(value)})
		}
		if of := index[keyOf(labels)]; of != nil {
			of.Exemplars = append(of.Exemplars, r.exemplar(s, of, e, labels))
		}
	}
	return nil
}

// exemplar returns an exemplar of a series. Its value is the value of the sample, or the duration
// of the span if the function measures durations.
func (r *run) exemplar(s *traceql.MetricsStage, of *Series, e *tracestore.Exemplar, labels []Label) Exemplar {
	duration := time.Duration(min(e.Duration, uint64(1<<63-1)))
	out := Exemplar{Time: time.Unix(0, int64(e.Start)), Value: duration.Seconds()}
	out.Labels = append(append([]Label{{"trace:id", otlpdata.StringValue(shortID(e.TraceID))}}, labels...),
		Label{"duration", otlpdata.StringValue(duration.String())})
	if s.Function.HasField() && s.Of.Place == tracestore.Duration {
		return out
	}
	at := 0
	if r.Step > 0 {
		at = int((out.Time.Sub(r.From) + r.Step - 1) / r.Step)
	}
	if out.Value = 0; at >= 0 && at < len(of.Samples) {
		out.Value = of.Samples[at]
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
