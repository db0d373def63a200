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
	dropper   pipeline.Dropper // the processor, if it is one; otherwise nil
	holds     bool
	count     outcomes
	log       *zap.Logger
	tracer    *selftrace.Tracer
	spanName  string
}

// NewProcessorEdge returns the edge of a processor or connector with these settings.
func NewProcessorEdge(processor pipeline.Consumer, m *Metrics, c Component, set pipeline.Settings) *ProcessorEdge {
	e := &ProcessorEdge{processor: processor, count: newOutcomes(m, c, outcomeIn, outcomeSent), log: set.Logger, tracer: set.Tracer,
		spanName: "process " + c.Name()}
	if c.Kind == pipeline.KindConnector.String() {
		e.spanName = "connect " + c.ID
	}
	_, e.holds = processor.(pipeline.Holder)
	e.dropper, _ = processor.(pipeline.Dropper)
	return e
}

// Consume passes b to the processor and counts its spans. Spans that a [pipeline.Holder] accepts
// are counted later, by a [HolderEdge].
func (e *ProcessorEdge) Consume(ctx context.Context, b *otlpdata.Batch) error {
	e.count.in.Add(float64(b.Len()))
	dropped, err := e.call(ctx, b)
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

// call passes b to the processor, in a span.
func (e *ProcessorEdge) call(ctx context.Context, b *otlpdata.Batch) (dropped int, err error) {
	ctx, span := e.tracer.Start(ctx, e.spanName)
	defer recoverCall(e.log, span, &err)
	if e.dropper != nil {
		dropped, err = e.dropper.ConsumeDropping(ctx, b)
	} else {
		err = e.processor.Consume(ctx, b)
	}
	err = nameLate(ctx, e.count.component, checked(err))
	selftrace.End(span, err)
	return dropped, err
}
