// Package filter provides the `filter` processor of the OpenTelemetry Collector, which drops the
// spans and span events that conditions select.
package filter

//lint:file-ignore SA1019 configurations still have the older keys traces and spans

import (
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/filterprocessor"
	"go.opentelemetry.io/collector/component"

	"github.com/tracing-backend/tracing/internal/collectorkeys"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otelcol"
	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// Factory returns the factory of processors of type filter.
func Factory() pipeline.Factory {
	return otelcol.Processor(filterprocessor.NewFactory(), otelcol.Explained(explain), otelcol.Keys(collectorkeys.Filter()),
		otelcol.Summary("Drops the spans and events that conditions select."))
}

// explain lists the conditions, because whether spans match depends on their content.
func explain(c component.Config, _ sampling.TraceID) sampling.Stage {
	config := c.(*filterprocessor.Config)
	s := sampling.Stage{Kind: "processor", Method: sampling.MethodConditions, Verdict: sampling.Depends, Key: "traces"}
	add := func(context string, conditions []string) {
		for _, text := range conditions {
			s.Rules = append(s.Rules, sampling.Rule{Name: context, Type: "ottl", Text: text, Verdict: sampling.Depends})
		}
	}
	add("resource", config.Traces.ResourceConditions)
	add("span", config.Traces.SpanConditions)
	for _, group := range config.TraceConditions {
		if s.Key = "trace_conditions"; group.Context != "spanevent" {
			add(string(group.Context), group.Conditions)
		}
	}
	if config.Spans.Include != nil || config.Spans.Exclude != nil {
		s.Rules = append(s.Rules, sampling.Rule{Name: "spans", Type: "match", Text: "include or exclude of spans", Verdict: sampling.Depends})
	}
	if len(s.Rules) == 0 {
		s.Verdict = sampling.Keeps
	}
	return s
}
