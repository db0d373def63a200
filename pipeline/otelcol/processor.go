package otelcol

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Processor returns the factory of a processor of the Collector.
func Processor(f processor.Factory) pipeline.Factory {
	return pipeline.Processor(f.Type().String(), defaults(f),
		func(set pipeline.Settings, c Config, next pipeline.Consumer) (*tracesProcessor, error) {
			return newProcessor(f, set, c, next)
		}).Doc(docOf(f))
}

// tracesProcessor runs a processor of the Collector.
type tracesProcessor struct {
	lifecycle
	inner processor.Traces
}

func newProcessor(f processor.Factory, set pipeline.Settings, c Config, next pipeline.Consumer) (*tracesProcessor, error) {
	id, err := componentID(f, set.ID)
	if err != nil {
		return nil, err
	}
	inner, err := f.CreateTraces(context.Background(), processor.Settings{
		ID: id, TelemetrySettings: telemetry(set), BuildInfo: buildInfo(set),
	}, c.value, &sink{next})
	if err != nil {
		return nil, err
	}
	return &tracesProcessor{lifecycle{component: inner, set: set}, inner}, nil
}

// Consume passes the spans of b to the component as objects.
func (p *tracesProcessor) Consume(ctx context.Context, b *otlpdata.Batch) error {
	td, err := objects(b, p.inner.Capabilities().MutatesData)
	if err != nil {
		return pipeline.Permanent(err)
	}
	return classified(p.inner.ConsumeTraces(withMeta(ctx, b.Meta()), td))
}

// objects returns the spans of b, or a copy that may be changed.
func objects(b *otlpdata.Batch, mutable bool) (ptrace.Traces, error) {
	if !mutable {
		return b.Traces()
	}
	var td ptrace.Traces
	_, err := b.Edit(func(c ptrace.Traces) error {
		td = c
		return nil
	})
	return td, err
}

// sink passes what a component emits to the next consumer of the pipeline.
type sink struct{ next pipeline.Consumer }

// Capabilities says that the sink keeps the spans, so that the component must not use them again.
func (*sink) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

// ConsumeTraces passes spans on with the origin of the request that they arrived with.
func (s *sink) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	b := otlpdata.FromTraces(td, metaOf(ctx))
	if b.Len() == 0 {
		return nil
	}
	return s.next.Consume(ctx, b)
}

type metaKey struct{}

// withMeta returns a context by which the sink finds the origin of a request.
func withMeta(ctx context.Context, m otlpdata.Meta) context.Context {
	return context.WithValue(ctx, metaKey{}, m)
}

func metaOf(ctx context.Context) otlpdata.Meta {
	m, _ := ctx.Value(metaKey{}).(otlpdata.Meta)
	return m
}

var _ component.Component = processor.Traces(nil)
