package tracing

import (
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/attributesprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/filterprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/groupbytraceprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/redactionprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/resourceprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/tailsamplingprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/transformprocessor"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otelcol"
)

// collectorProcessors returns the processors of the OpenTelemetry Collector that are built in.
func collectorProcessors() []pipeline.Factory {
	return []pipeline.Factory{
		otelcol.Processor(attributesprocessor.NewFactory(), otelcol.Summary("Adds, changes and deletes attributes of spans.")),
		otelcol.Processor(filterprocessor.NewFactory(), otelcol.Summary("Drops the spans and events that conditions select.")),
		otelcol.Processor(groupbytraceprocessor.NewFactory(),
			otelcol.Summary("Holds the spans of each trace for some time and passes them on together.")),
		otelcol.Processor(redactionprocessor.NewFactory(), otelcol.Summary("Deletes and masks attributes of spans, resources and scopes.")),
		otelcol.Processor(resourceprocessor.NewFactory(), otelcol.Summary("Adds, changes and deletes attributes of resources.")),
		otelcol.Processor(tailsamplingprocessor.NewFactory(), otelcol.CheckedByStart(),
			otelcol.Summary("Holds the spans of each trace until policies decide whether the trace is kept or dropped.")),
		otelcol.Processor(transformprocessor.NewFactory(),
			otelcol.Summary("Changes spans with statements of the OpenTelemetry Transformation Language.")),
	}
}
