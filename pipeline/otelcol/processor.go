package otelcol

import (
	"context"
	"errors"
	"maps"
	"sync/atomic"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Processor returns the factory of a Collector processor.
func Processor(f processor.Factory, options ...Option) pipeline.Factory {
	o := optionsOf(options)
	check := func(c component.Config) error { return checkProcessor(f, c, o.checkedByStart) }
	return o.applied(f, pipeline.Processor(f.Type().String(), defaults(f, check, o.keys),
		func(set pipeline.Settings, c Config, next pipeline.Consumer) (*tracesProcessor, error) {
			p, err := newProcessor(f, set, c, next)
			if err == nil {
				p.explainer = explainer{o.explain, c.value}
			}
			return p, err
		}))
}

// checkProcessor builds a processor on a trial basis, because some mistakes are found only then. If
// start is set, it also starts and stops the processor.
func checkProcessor(f processor.Factory, c component.Config, start bool) error {
	next, err := consumer.NewTraces(func(context.Context, ptrace.Traces) error { return nil })
	if err != nil {
		return err
	}
	p, err := f.CreateTraces(context.Background(), processor.Settings{
		ID: component.NewID(f.Type()), TelemetrySettings: silentTelemetry(),
	}, c, next)
	if err != nil || !start {
		return err
	}
	if err := p.Start(context.Background(), host{}); err != nil {
		return err
	}
	return p.Shutdown(context.Background())
}

// tracesProcessor runs a Collector processor.
type tracesProcessor struct {
	lifecycle
	explainer
	calls   calls
	inner   processor.Traces
	mutates bool
}

func newProcessor(f processor.Factory, set pipeline.Settings, c Config, next pipeline.Consumer) (*tracesProcessor, error) {
	id, tel, err := identity(f, set)
	if err != nil {
		return nil, err
	}
	inner, err := f.CreateTraces(context.Background(), processor.Settings{
		ID: id, TelemetrySettings: tel, BuildInfo: buildInfo(set),
	}, c.value, &sink{next})
	if err != nil {
		return nil, err
	}
	return &tracesProcessor{lifecycle: lifecycle{inner, set.Report, set.Logger}, calls: calls{budget: set.Budget}, inner: inner,
		mutates: inner.Capabilities().MutatesData}, nil
}

// HandOver does nothing: the processor runs at the same time as its replacement.
func (p *tracesProcessor) HandOver(context.Context) {}

// Consume passes the spans of b to the component. See ConsumeDropping.
func (p *tracesProcessor) Consume(ctx context.Context, b *otlpdata.Batch) error {
	_, err := p.ConsumeDropping(ctx, b)
	return err
}

// ConsumeDropping passes the spans of b to the component as objects. Spans that the component has
// not passed on when it returns count as dropped.
func (p *tracesProcessor) ConsumeDropping(ctx context.Context, b *otlpdata.Batch) (dropped int, err error) {
	td, err := objects(b, p.mutates)
	if err != nil {
		return 0, pipeline.Permanent(err)
	}
	c := &call{meta: b.Meta()}
	err = p.calls.call(ctx, int64(b.Size()), func() error {
		return p.inner.ConsumeTraces(context.WithValue(withClient(ctx, c.meta), callKey{}, c), td)
	})
	return b.Len() - int(c.passed.Load()), classified(err)
}

// withClient returns a context in which components find the headers of the request that the spans
// arrived with, if its receiver keeps them (from_context: metadata.x-org).
func withClient(ctx context.Context, meta otlpdata.Meta) context.Context {
	if meta.Metadata == (otlpdata.Metadata{}) {
		return ctx
	}
	headers := maps.Collect(meta.Metadata.All())
	return client.NewContext(ctx, client.Info{Metadata: client.NewMetadata(headers)})
}

// objects returns the spans of b, or a copy if the component modifies them.
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

// Capabilities says that the sink keeps the spans, so that the component must not use them
// afterwards.
func (*sink) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

// errHolds is the error of a component that holds spans but is not adapted with HoldingProcessor.
var errHolds = errors.New("component passes on spans later than it has acknowledged them; use otelcol.HoldingProcessor for it")

// ConsumeTraces passes spans on with the origin of the request that they arrived with.
func (s *sink) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		return pipeline.Permanent(errHolds)
	}
	b := otlpdata.FromTraces(td, c.meta)
	if b.Len() == 0 {
		return nil
	}
	c.passed.Add(int64(b.Len()))
	return s.next.Consume(ctx, b)
}

type callKey struct{}

// call is a call of a component, which the sink finds by the context.
type call struct {
	meta   otlpdata.Meta
	passed atomic.Int64 // spans
}
