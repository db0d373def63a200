// Package nop implements the `nop` exporter. It discards spans and log records, and is used to
// measure the pipeline in front of it.
package nop

import (
	"context"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Config is the configuration of the exporter. It has no keys.
type Config struct{}

// Factory returns the factory of exporters of type nop.
func Factory() pipeline.Factory {
	return pipeline.Exporter("nop", func() Config { return Config{} }, newExporter).Logs().
		Doc("Discards spans and log records; used to measure the pipeline in front of it.")
}

type exporter struct{}

var _ pipeline.DurabilityReporter = (*exporter)(nil)

func newExporter(pipeline.Settings, Config) (*exporter, error) { return &exporter{}, nil }

// Consume accepts and discards b.
func (*exporter) Consume(context.Context, *otlpdata.Batch) error { return nil }

// Durability returns DurabilityNone, because spans are discarded.
func (*exporter) Durability() pipeline.Durability { return pipeline.DurabilityNone }
