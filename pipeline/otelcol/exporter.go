package otelcol

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Exporter returns the factory of a Collector exporter. The keys sending_queue, retry_on_failure
// and timeout are the exporter's own, if it has them. With its own queue, which most exporters
// enable by default, spans are acknowledged when they are in memory. Tenants are not passed on.
func Exporter(f exporter.Factory, options ...Option) pipeline.Factory {
	o := optionsOf(options)
	check := func(c component.Config) error {
		_, err := f.CreateTraces(context.Background(), exporter.Settings{
			ID: component.NewID(f.Type()), TelemetrySettings: silentTelemetry(),
		}, c)
		return err
	}
	return o.applied(f, pipeline.Exporter(f.Type().String(), defaults(f, check, o.keys),
		func(set pipeline.Settings, c Config) (*tracesExporter, error) { return newExporter(f, set, c) }))
}

// tracesExporter runs a Collector exporter.
type tracesExporter struct {
	lifecycle
	calls   calls
	inner   exporter.Traces
	mutates bool
	queued  bool
}

var _ pipeline.DurabilityReporter = (*tracesExporter)(nil)

func newExporter(f exporter.Factory, set pipeline.Settings, c Config) (*tracesExporter, error) {
	id, tel, err := identity(f, set)
	if err != nil {
		return nil, err
	}
	inner, err := f.CreateTraces(context.Background(), exporter.Settings{
		ID: id, TelemetrySettings: tel, BuildInfo: buildInfo(set),
	}, c.value)
	if err != nil {
		return nil, err
	}
	return &tracesExporter{lifecycle: lifecycle{inner, set.Report, set.Logger}, calls: calls{budget: set.Budget}, inner: inner,
		mutates: inner.Capabilities().MutatesData, queued: queues(c.EffectiveTree())}, nil
}

// queues reports whether an exporter with these settings has a queue of its own.
func queues(effective map[string]any) bool {
	queue, ok := effective["sending_queue"].(map[string]any)
	enabled, given := queue["enabled"].(bool)
	return ok && (enabled || !given)
}

// Consume makes one attempt to export the spans of b, or puts them into the exporter's own queue.
func (e *tracesExporter) Consume(ctx context.Context, b *otlpdata.Batch) error {
	td, err := objects(b, e.mutates)
	if err != nil {
		return pipeline.Permanent(err)
	}
	return classified(e.calls.call(ctx, int64(b.Size()), func() error { return e.inner.ConsumeTraces(ctx, td) }))
}

// Durability returns where spans are when Consume has returned nil.
func (e *tracesExporter) Durability() pipeline.Durability {
	if e.queued {
		return pipeline.DurabilityQueued
	}
	return pipeline.DurabilitySent
}
