// Command collector-components is the tracing backend with a processor, an exporter and a receiver
// of the OpenTelemetry Collector that are not built in.
package main

import (
	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter"
	"github.com/open-telemetry/opentelemetry-collector-contrib/processor/groupbyattrsprocessor"
	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/jaegerreceiver"

	"github.com/tracing-backend/tracing"
	"github.com/tracing-backend/tracing/pipeline/app"
	"github.com/tracing-backend/tracing/pipeline/otelcol"
)

func main() {
	app.Main(append(tracing.Components(),
		otelcol.Receiver(jaegerreceiver.NewFactory()),
		otelcol.Processor(groupbyattrsprocessor.NewFactory()),
		otelcol.Exporter(fileexporter.NewFactory()),
	), tracing.Presets()...)
}
