// Package groupbytrace provides the `groupbytrace` processor of the OpenTelemetry Collector, which
// holds the spans of each trace for some time and passes them on together.
//
// The component does not report evicted traces. Their spans count as dropped a few seconds after
// they should have come out.
package groupbytrace

import (
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/groupbytraceprocessor"
	"go.opentelemetry.io/collector/component"

	"github.com/tracing-backend/tracing/internal/collectorkeys"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otelcol"
)

// Factory returns the factory of processors of type groupbytrace.
func Factory() pipeline.Factory {
	return otelcol.HoldingProcessor(groupbytraceprocessor.NewFactory(), otelcol.Holding{
		Longest: func(c component.Config) time.Duration { return c.(*groupbytraceprocessor.Config).WaitDuration },
	}, otelcol.Keys(collectorkeys.GroupByTrace()), otelcol.Summary("Holds the spans of each trace for some time and passes them on together."))
}
