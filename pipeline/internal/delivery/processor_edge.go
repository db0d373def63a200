package delivery

import (
	"context"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/selftrace"
)

// ProcessorEdge is the Consumer before a processor or connector. It counts spans by the outcome
// that the component returns, and turns a panic of the component into an error.
type ProcessorEdge struct {
	processor pipeline.Consumer
	call      func(context.Context, *otlpdata.Batch) (dropped int, err error)
	holds     bool
	count     outcomes
	log       *zap.Logger
	tracer    *selftrace.Tracer
	spanName  string
}

// NewProcessorEdge returns the edge of a processor or connector with these settings.
func NewProcessorEdge(processor pipeline.Consumer, m *Metrics, c Component, set pipeline.Settings) *ProcessorEdge {
	e := &ProcessorEdge{processor: processor, count: newOutcomes(m, c, outcomeIn, outcomeSent), log: set.Logger, tracer: set.Tracer,
		spanName: "process " + c.ID}
	if c.Kind == pipeline.KindConnector.String() {
		e.spanName = "connect " + c.ID
	}
	_, e.holds = processor.(pipeline.Holder)
	e.call = func(ctx context.Context, b *otlpdata.Batch) (int, error) { return 0, processor.Consume(ctx, b) }
	if d, ok := processor.(pipeline.Dropper); ok {
		e.call = d.ConsumeDropping
	}
	return e
}

// Consume passes b to the processor and counts its spans. What a [pipeline.Holder] accepts is
// counted later, by a [HolderEdge].
func (e *ProcessorEdge) Consume(ctx context.Context, b *otlpdata.Batch) error {
	e.count.in.Add(float64(b.Len()))
	ctx, span := e.tracer.Start(ctx, e.spanName)
	dropped, err := e.consumeSafely(ctx, b)
	err = nameLate(ctx, e.count.component, err)
	selftrace.End(span, err)
	n := b.Len() - e.count.fail(b.Len(), err, outcomeRefused)
	if e.holds || n == 0 {
		return err
	}
	if dropped > 0 {
		dropped = min(dropped, n)
		e.count.add(outcomeDropped, pipeline.DroppedByPolicy, dropped)
	} else {
		e.count.in.Add(float64(-dropped)) // the processor has made spans
	}
	e.count.out.Add(float64(n - dropped))
	return err
}

func (e *ProcessorEdge) consumeSafely(ctx context.Context, b *otlpdata.Batch) (dropped int, err error) {
	defer recoverConsume(e.log, &err)
	return e.call(ctx, b)
}
