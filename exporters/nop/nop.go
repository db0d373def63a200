// Package nop is the exporter "nop", which takes spans and forgets them: for measuring what comes before it.
package nop

import (
	"context"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Config is the configuration of the exporter: there is nothing to configure.
type Config struct{}

// Factory makes exporters of type "nop".
func Factory() pipeline.Factory {
	return pipeline.Exporter("nop", func() Config { return Config{} }, newExporter).
		Doc("Takes spans and forgets them, for measuring what comes before it.")
}

type exporter struct{}

var _ pipeline.DurabilityReporter = (*exporter)(nil)

func newExporter(pipeline.Settings, Config) (*exporter, error) { return &exporter{}, nil }

// Consume takes everything.
func (*exporter) Consume(context.Context, *otlpdata.Batch) error { return nil }

// Keeps tells that nothing is kept.
func (*exporter) Durability() pipeline.Durability { return pipeline.DurabilityNone }
