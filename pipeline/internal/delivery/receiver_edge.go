package delivery

import (
	"context"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// msgBatchProcessed is a log message that users rely on.
const msgBatchProcessed = "Span batch processed by the collector."

// ReceiverEdge is the Consumer between a receiver and its pipelines. It counts the spans that the
// receiver offers and their outcome.
type ReceiverEdge struct {
	next    pipeline.Consumer
	metrics *Metrics
	count   outcomes
	log     *zap.Logger
	// collects is true if at least one exporter behind the receiver stores or discards spans. If
	// all exporters only forward spans to next hops (as in an agent), the edge does not report the
	// metrics and log messages that are specific to collectors.
	collects atomic.Bool
}

// NewReceiverEdge returns the edge of a receiver that passes spans to next.
func NewReceiverEdge(next pipeline.Consumer, m *Metrics, c Component, log *zap.Logger) *ReceiverEdge {
	return &ReceiverEdge{next: next, metrics: m, log: log, count: newOutcomes(m, c, outcomeReceived, outcomeAccepted)}
}

// SetCollects sets whether spans end in this process, so that the metrics of collectors count them.
func (e *ReceiverEdge) SetCollects(collects bool) { e.collects.Store(collects) }

// Consume passes b to the pipelines and counts its spans.
func (e *ReceiverEdge) Consume(ctx context.Context, b *otlpdata.Batch) error {
	e.countOffered(b)
	err := consumeSafely(ctx, e.next, b, e.log)
	e.countOutcome(b, err)
	return err
}

// ConsumeJoined passes batches to the pipelines as one batch and counts each of them.
func (e *ReceiverEdge) ConsumeJoined(ctx context.Context, batches []*otlpdata.Batch, outcome func([]*otlpdata.Batch, error)) {
	for _, b := range batches {
		e.countOffered(b)
	}
	pipeline.ConsumeJoined(ctx, &guard{e.next, e.log}, batches, func(of []*otlpdata.Batch, err error) {
		for _, b := range of {
			e.countOutcome(b, err)
		}
		outcome(of, err)
	})
}

func (e *ReceiverEdge) countOffered(b *otlpdata.Batch) {
	e.count.in.Add(float64(b.Len()))
	if e.collects.Load() {
		e.metrics.collector.countReceived(b)
	}
}

// countOutcome counts and logs the outcome of a batch that was counted as offered.
func (e *ReceiverEdge) countOutcome(b *otlpdata.Batch, err error) {
	e.count.settle(b.Len(), err, outcomeRefused)
	if !e.collects.Load() {
		return
	}
	if err != nil {
		e.metrics.collector.countRejected(b, err)
	}
	if ce := e.log.Check(zap.DebugLevel, msgBatchProcessed); ce != nil {
		ce.Write(zap.Bool("ok", err == nil), zap.Error(err))
	}
}
