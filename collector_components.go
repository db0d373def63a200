package tracing

import (
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/attributesprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/redactionprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/resourceprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/transformprocessor"

	"github.com/tracing-backend/tracing/internal/collectorkeys"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otelcol"
	"github.com/tracing-backend/tracing/processors/filter"
	"github.com/tracing-backend/tracing/processors/groupbytrace"
	tailsampling "github.com/tracing-backend/tracing/processors/tail_sampling"
)

// collectorProcessors returns the processors of the OpenTelemetry Collector that are built in.
func collectorProcessors() []pipeline.Factory {
	return []pipeline.Factory{
		otelcol.Processor(attributesprocessor.NewFactory(), otelcol.Keys(collectorkeys.Attributes()),
			otelcol.Summary("Adds, changes and deletes attributes of spans.")),
		filter.Factory(),
		groupbytrace.Factory(),
		otelcol.Processor(redactionprocessor.NewFactory(), otelcol.Keys(collectorkeys.Redaction()),
			otelcol.Summary("Deletes and masks attributes of spans, resources and scopes.")),
		otelcol.Processor(resourceprocessor.NewFactory(), otelcol.Keys(collectorkeys.Resource()),
			otelcol.Summary("Adds, changes and deletes attributes of resources.")),
		tailsampling.Factory(),
		otelcol.Processor(transformprocessor.NewFactory(), otelcol.Keys(collectorkeys.Transform()),
			otelcol.Summary("Changes spans with statements of the OpenTelemetry Transformation Language.")),
	}
}
