package delivery

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc/codes"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/errclass"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/selftrace"
)

// msgBatchProcessed is a log message that users rely on.
const msgBatchProcessed = "Span batch processed by the collector."

// ReceiverEdge is the Consumer between a receiver and its pipelines. It counts the spans and log
// records that the receiver offers and their outcome.
type ReceiverEdge struct {
	next    pipeline.Consumer
	metrics *Metrics
	tracer  *selftrace.Tracer

	component Component   // of spans
	count     [2]outcomes // by otlpdata.Signal; begun when a pipeline takes the signal
	begun     [2]sync.Once
	takes     [2]atomic.Bool
	received  *Received
	log       *zap.Logger
	maxWait   func() WaitLimit // how long a client waits for its response
	// collects is true if at least one exporter behind the receiver stores or discards spans. If
	// all exporters only forward spans to next hops (as in an agent), the edge does not report the
	// metrics and log messages that are specific to collectors.
	collects atomic.Bool
}

// NewReceiverEdge returns the edge of a receiver with these settings that passes spans to next.
// maxWait is called for each batch and returns the maximum time until Consume returns.
func NewReceiverEdge(next pipeline.Consumer, m *Metrics, c Component, set pipeline.Settings, maxWait func() WaitLimit) *ReceiverEdge {
	e := &ReceiverEdge{next: next, metrics: m, tracer: set.Tracer, log: set.Logger, maxWait: maxWait, received: m.Received(c), component: c}
	e.countOf(otlpdata.SignalTraces)
	return e
}

// countOf returns the counters of a signal.
func (e *ReceiverEdge) countOf(s otlpdata.Signal) *outcomes {
	e.begun[s].Do(func() {
		c := e.component
		c.Signal = s
		e.count[s] = newOutcomes(e.metrics, c, outcomeReceived, outcomeAccepted)
	})
	return &e.count[s]
}

// SetWays sets where the spans and log records of the receiver go.
func (e *ReceiverEdge) SetWays(ways []Way) {
	for s := range e.takes {
		signal := otlpdata.Signal(s)
		takes := slices.ContainsFunc(ways, func(w Way) bool { return w.Signal == signal })
		if takes {
			e.countOf(signal)
		}
		e.takes[s].Store(takes)
	}
}

// Takes implements [pipeline.Taker].
func (e *ReceiverEdge) Takes(s otlpdata.Signal) bool { return e.takes[s].Load() }

// SetCollects sets whether spans end in this process, so that the metrics of collectors count them.
func (e *ReceiverEdge) SetCollects(collects bool) { e.collects.Store(collects) }

// Consume passes b to the pipelines and counts its spans. If the pipelines need longer than the
// maximum wait, or almost until the client's deadline, it returns an Unavailable error: a client
// that gets no response in time does not know how long to wait before a retry.
func (e *ReceiverEdge) Consume(ctx context.Context, b *otlpdata.Batch) error {
	e.countOffered(b)
	ctx, span := e.tracer.StartIntake(ctx, "deliver", b, time.Now)
	limited, cancel := ctx, context.CancelFunc(func() {})
	if limit := e.maxWait().before(ctx); limit.Max > 0 {
		limited, cancel = context.WithTimeoutCause(ctx, limit.Max, &waitError{limit})
	}
	defer cancel()
	err := e.next.Consume(limited, b)
	if ctx.Err() == nil { // otherwise the client has left or has its response
		err = unavailableIfLate(err)
	}
	selftrace.End(span, err)
	e.countOutcome(b, err)
	return err
}

// unavailableIfLate marks an error as Unavailable if the maximum wait is its reason.
func unavailableIfLate(err error) error {
	if err == nil {
		return nil
	}
	var partial *pipeline.Partial
	if c := errclass.Of(err); c.Code == codes.DeadlineExceeded && !errors.As(err, &partial) {
		return errclass.Unavailable(err, c.Requested)
	}
	return err
}

// ConsumeJoined passes batches to the pipelines as one batch and counts each of them. Its callers
// receive datagrams: no client waits, so there is no maximum wait.
func (e *ReceiverEdge) ConsumeJoined(ctx context.Context, batches []*otlpdata.Batch, outcome func([]*otlpdata.Batch, error)) {
	for _, b := range batches {
		e.countOffered(b)
	}
	pipeline.ConsumeJoined(ctx, e.next, batches, func(of []*otlpdata.Batch, err error) {
		for _, b := range of {
			e.countOutcome(b, err)
		}
		outcome(of, err)
	})
}

func (e *ReceiverEdge) countOffered(b *otlpdata.Batch) {
	e.countOf(b.Meta().Signal).in.Add(float64(b.Len()))
	if b.Meta().Signal != otlpdata.SignalTraces {
		return
	}
	e.received.receive(b.Meta().Transport, b.Len())
	if e.collects.Load() {
		e.metrics.collector.countReceived(b)
	}
}

// countOutcome counts and logs the outcome of a batch that was counted as offered.
func (e *ReceiverEdge) countOutcome(b *otlpdata.Batch, err error) {
	refused := e.countOf(b.Meta().Signal).settle(b.Len(), err, outcomeRefused)
	if b.Meta().Signal != otlpdata.SignalTraces {
		return
	}
	e.received.refuse(b.Meta().Transport, refused, err)
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
