package otelcol

import (
	"context"
	"errors"
	"maps"
	"sync/atomic"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Processor returns the factory of a Collector processor. If the processor supports logs, it can
// also be in pipelines of logs.
func Processor(f processor.Factory, options ...Option) pipeline.Factory {
	o := optionsOf(options)
	check := func(c component.Config) error { return checkProcessor(f, c, o.checkedByStart) }
	out := o.applied(f, pipeline.Processor(f.Type().String(), defaults(f, check, o.keys),
		func(set pipeline.Settings, c Config, next pipeline.Consumer) (*itemsProcessor, error) {
			p, err := newProcessor(f, set, c, next)
			if err == nil && set.Signal == otlpdata.SignalTraces {
				p.explainer = explainer{o.explain, c.value}
			}
			return p, err
		}))
	if f.LogsStability() != component.StabilityLevelUndefined {
		out = out.Logs()
	}
	return out
}

// checkProcessor builds a processor on a trial basis, because some mistakes are found only then. If
// start is set, it also starts and stops the processor.
func checkProcessor(f processor.Factory, c component.Config, start bool) error {
	set := processor.Settings{ID: component.NewID(f.Type()), TelemetrySettings: silentTelemetry()}
	if f.LogsStability() != component.StabilityLevelUndefined {
		if _, err := f.CreateLogs(context.Background(), set, c, &sink{}); err != nil {
			return err
		}
	}
	if f.TracesStability() == component.StabilityLevelUndefined {
		return nil
	}
	p, err := f.CreateTraces(context.Background(), set, c, &sink{})
	if err != nil || !start {
		return err
	}
	if err := p.Start(context.Background(), host{}); err != nil {
		return err
	}
	return p.Shutdown(context.Background())
}

// itemsProcessor runs a Collector processor of spans or of log records.
type itemsProcessor struct {
	lifecycle
	explainer
	calls   calls
	traces  processor.Traces // or
	logs    processor.Logs
	mutates bool
}

func newProcessor(f processor.Factory, set pipeline.Settings, c Config, next pipeline.Consumer) (*itemsProcessor, error) {
	id, tel, err := identity(f, set)
	if err != nil {
		return nil, err
	}
	p := &itemsProcessor{calls: calls{budget: set.Budget}}
	settings := processor.Settings{ID: id, TelemetrySettings: tel, BuildInfo: buildInfo(set)}
	var inner component.Component
	if set.Signal == otlpdata.SignalLogs {
		p.logs, err = f.CreateLogs(context.Background(), settings, c.value, &sink{next})
		inner = p.logs
	} else {
		p.traces, err = f.CreateTraces(context.Background(), settings, c.value, &sink{next})
		inner = p.traces
	}
	if err != nil {
		return nil, err
	}
	if p.traces != nil {
		p.mutates = p.traces.Capabilities().MutatesData
	}
	p.lifecycle = lifecycle{inner, set.Report, set.Logger}
	return p, nil
}

// HandOver does nothing: the processor runs at the same time as its replacement.
func (p *itemsProcessor) HandOver(context.Context) {}

// Consume passes the spans or log records of b to the component. See ConsumeDropping.
func (p *itemsProcessor) Consume(ctx context.Context, b *otlpdata.Batch) error {
	_, err := p.ConsumeDropping(ctx, b)
	return err
}

// ConsumeDropping passes the items of b to the component as objects. Items that the component has
// not passed on when it returns count as dropped.
func (p *itemsProcessor) ConsumeDropping(ctx context.Context, b *otlpdata.Batch) (dropped int, err error) {
	pass, err := p.passes(b)
	if err != nil {
		return 0, pipeline.Permanent(err)
	}
	c := &call{meta: b.Meta()}
	err = p.calls.call(ctx, int64(b.Size()), func() error { return pass(context.WithValue(withClient(ctx, c.meta), callKey{}, c)) })
	return b.Len() - int(c.passed.Load()), classified(err)
}

// passes returns a function that passes the items of b to the component.
func (p *itemsProcessor) passes(b *otlpdata.Batch) (func(context.Context) error, error) {
	if p.logs != nil {
		ld, err := b.Logs()
		return func(ctx context.Context) error { return p.logs.ConsumeLogs(ctx, ld) }, err
	}
	td, err := objects(b, p.mutates)
	return func(ctx context.Context) error { return p.traces.ConsumeTraces(ctx, td) }, err
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
	return s.pass(ctx, c, otlpdata.FromTraces(td, c.meta))
}

// ConsumeLogs is like ConsumeTraces for log records.
func (s *sink) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		return pipeline.Permanent(errHolds)
	}
	b, err := otlpdata.FromLogs(ld, c.meta)
	if err != nil {
		return pipeline.Permanent(err)
	}
	return s.pass(ctx, c, b)
}

func (s *sink) pass(ctx context.Context, c *call, b *otlpdata.Batch) error {
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
	passed atomic.Int64 // spans or log records
}
