package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// stopGrace is how long the end of sends that were given up is waited for: an exporter that ignores its context must not hold up the process.
const stopGrace = 5 * time.Second

// exporterEdge stands in front of an exporter. It counts, and for an exporter that sends over a network it tries again and queues:
//
//	Consume ──▶ counters ──▶ queue ──▶ retry ──▶ timeout ──▶ exporter
//
// Without a queue the caller waits for the outcome and is told it. With one, a caller is told yes when its batch is in the queue; what
// becomes of it later is counted as sent, or as dropped with a reason.
type exporterEdge struct {
	next  Consumer // the exporter, or the sender in front of it
	tel   *telemetry
	count outcomes
	keep  Keep
	now   func() time.Time
	log   *zap.Logger
	dead  *deadLetters

	queue     *queue // nil: none
	consumers sync.WaitGroup
	giveUp    context.CancelFunc // ends the sends of the consumers
}

// Consume counts, then queues or passes on.
func (e *exporterEdge) Consume(ctx context.Context, b *otlpdata.Batch) error {
	e.count.in.Add(float64(b.Len()))
	if e.queue != nil {
		err := e.queue.put(ctx, b)
		if err != nil {
			e.count.settle(b.Len(), err, outcomeRefused)
		}
		return err
	}
	start := e.now()
	err := guard(ctx, e.next, b, e.log)
	e.count.settle(b.Len(), err, outcomeRefused)
	if e.keep == KeepMemory || e.keep == KeepStored || e.keep == KeepWritten {
		e.saved(b, err, e.now().Sub(start))
	}
	return err
}

// saved counts and logs what a store took.
func (e *exporterEdge) saved(b *otlpdata.Batch, err error, took time.Duration) {
	if err != nil {
		e.tel.collector.saved(b, "err", took)
		return
	}
	e.tel.collector.saved(b, "ok", took)
	if e.log.Core().Enabled(zap.DebugLevel) {
		e.logSpans(b)
	}
}

// start begins to read the queue. It is called after the exporter has started.
func (e *exporterEdge) start() {
	if e.queue == nil {
		return
	}
	var ctx context.Context
	ctx, e.giveUp = context.WithCancel(context.Background())
	for range e.queue.config.NumConsumers {
		e.consumers.Go(func() { e.consume(ctx) })
	}
}

// consume sends what is in the queue until it is closed and empty.
func (e *exporterEdge) consume(ctx context.Context) {
	for {
		item, ok := e.queue.take()
		if !ok {
			return
		}
		err := guard(ctx, e.next, item.batch, e.log)
		if err != nil && ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", ErrStopping, err)
		}
		e.settle(item.batch, err)
		e.queue.done(item)
	}
}

// settle counts the outcome of a batch that was in the queue. What is dropped is logged, and kept as a dead letter if there is a place for
// it and the destination refused it for good.
func (e *exporterEdge) settle(b *otlpdata.Batch, err error) {
	dropped := e.count.settle(b.Len(), err, outcomeDropped)
	if dropped == 0 {
		return
	}
	e.tel.collector.spansDropped.Add(float64(dropped))
	fields := []zap.Field{zap.Int("spans", dropped), zap.String("reason", reason(err)), zap.Error(err)}
	if partial := (*Partial)(nil); !errors.As(err, &partial) && IsPermanent(err) {
		if file := e.dead.keep(e.count.component, b, e.log); file != "" {
			fields = append(fields, zap.String("dead-letter", file))
		}
	}
	e.log.Error("spans were dropped", fields...)
}

// stop takes nothing more and sends what is left. When ctx ends first, what is left is counted as dropped, and the error says how much.
func (e *exporterEdge) stop(ctx context.Context) error {
	if e.queue == nil || e.giveUp == nil {
		return nil
	}
	defer e.giveUp()
	e.queue.close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.consumers.Wait()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	lost := 0
	for _, item := range e.queue.drain() {
		lost += item.batch.Len()
		e.settle(item.batch, ErrStopping)
		e.queue.done(item)
	}
	if lost == 0 && e.queue.state().spans == 0 {
		<-done
		return nil // it was empty: only ctx had ended before
	}
	e.giveUp()
	err := fmt.Errorf("the sending queue was not empty in time: %d waiting spans were dropped: %w", lost, ctx.Err())
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-done:
		return err
	case <-grace.C:
		return fmt.Errorf("%w; sends are still under way: the exporter does not end them with their context", err)
	}
}

// logSpans writes the interface's debug line for each span.
func (e *exporterEdge) logSpans(b *otlpdata.Batch) {
	segments, err := b.Segments()
	if err != nil {
		e.log.Error("cannot log the spans that were written", zap.Error(err))
		return
	}
	for _, s := range segments {
		if err := otlpdata.Walk(s, spanLogger{e.log}); err != nil {
			e.log.Error("cannot log the spans that were written", zap.Error(err))
		}
	}
}

type spanLogger struct{ log *zap.Logger }

// Resource does nothing.
func (spanLogger) Resource(*otlpdata.Resource) error { return nil }

// Scope does nothing.
func (spanLogger) Scope(*otlpdata.Scope) error { return nil }

// Span logs the span's ids.
func (l spanLogger) Span(s *otlpdata.Span) error {
	l.log.Debug(msgSpanWritten, zap.Stringer("trace-id", s.TraceID), zap.Stringer("span-id", s.SpanID))
	return nil
}
