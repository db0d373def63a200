package delivery

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/selftrace"
)

// msgSpanWritten is a log message that users rely on.
const msgSpanWritten = "Span written to the storage by the collector"

// ExporterEdge is the Consumer before an exporter. It counts spans and, for exporters with a
// [pipeline.Delivery], retries and queues:
//
//	Consume: counters -> queue -> send: span, recover -> sender: retries -> gate -> exporter
//
// Without a queue, Consume returns the outcome. With a queue, it returns when the batch is queued;
// its spans are later counted as sent, or as dropped with a reason.
//
// An edge outlives its exporter when the configuration is reloaded: Lead connects it to the next
// exporter. Start, Stop and Lead must not be called concurrently.
type ExporterEdge struct {
	component Component
	config    pipeline.QueueConfig // with defaults; zero: no queue
	gate      *Gate                // before the exporter
	sender    *sender              // before the gate; nil: the exporter has no Delivery
	next      pipeline.Consumer    // the sender, or the gate
	tracer    *selftrace.Tracer
	spanName  string
	metrics   *Metrics
	count     outcomes
	isStore   atomic.Bool
	now       func() time.Time
	log       *zap.Logger
	letters   func() *DeadLetters

	started     bool
	ended       atomic.Bool  // stopped: reports of the queue are ignored
	queue       sendingQueue // nil: none
	queueMemory int64        // maximum memory of the queue in bytes
	senders     int          // number of goroutines that send from the queue
	consumers   sync.WaitGroup
	cancelSends context.CancelFunc
	stopping    chan struct{} // closed when a queue on disk is stopped; nil: the queue is in memory
}

// ExporterOptions are the parameters of NewExporterEdge.
type ExporterOptions struct {
	Component   Component
	Settings    pipeline.Settings // of the exporter
	Metrics     *Metrics
	Queue       pipeline.QueueConfig // as returned by QueueOf
	Retries     bool                 // the configuration of the exporter has a Delivery
	DeadLetters func() *DeadLetters
	ReportQueue func(error) // reports the queue as degraded, or with nil as healthy again
}

// NewExporterEdge returns an edge that leads nowhere until Lead is called.
func NewExporterEdge(o ExporterOptions) *ExporterEdge {
	e := &ExporterEdge{component: o.Component, config: o.Queue, gate: &Gate{}, metrics: o.Metrics, log: o.Settings.Logger,
		now: o.Settings.Env.Now, letters: o.DeadLetters, tracer: o.Settings.Tracer, spanName: "export " + o.Component.Name(),
		count: newOutcomes(o.Metrics, o.Component, outcomeIn, outcomeSent)}
	e.next = e.gate
	if o.Retries {
		e.sender = newSender(e.gate, o.Settings.Env, o.Metrics.retries.WithLabelValues(o.Component.Name()).Inc)
		e.next = e.sender
	}
	if o.Queue.Enabled {
		reports := pipeline.NewReports(func(err error) {
			if !e.ended.Load() {
				o.ReportQueue(err)
			}
		})
		o.Settings.Report = reports.Part("disk")
		e.setQueue(o.Settings, reports.Part("capacity"))
		e.sender.stopping = e.stopping
	}
	return e
}

// Lead connects the edge to an exporter and opens its gate. The edge must be new or have been
// drained. d is the Delivery of the exporter's configuration, or nil; isStore says that the
// exporter keeps spans instead of sending them on.
func (e *ExporterEdge) Lead(exporter pipeline.Consumer, d *pipeline.Delivery, isStore bool) {
	if d != nil {
		e.sender.configure(d)
	}
	e.isStore.Store(isStore)
	e.gate.Open(exporter)
}

// Gate returns the gate before the exporter.
func (e *ExporterEdge) Gate() *Gate { return e.gate }

// QueueConfig returns the configuration of the queue, zero if there is none.
func (e *ExporterEdge) QueueConfig() pipeline.QueueConfig { return e.config }

// QueueMemory returns the maximum memory of the queue in bytes.
func (e *ExporterEdge) QueueMemory() int64 { return e.queueMemory }

// Started reports whether Start was called and Stop was not.
func (e *ExporterEdge) Started() bool { return e.started }

// InterruptRetries makes callers that wait for a retry return with the error of the last attempt.
// It has no effect on batches in a queue.
func (e *ExporterEdge) InterruptRetries() {
	if e.queue == nil && e.sender != nil {
		e.sender.interrupt()
	}
}

// Consume counts b, then queues it or passes it to the exporter.
func (e *ExporterEdge) Consume(ctx context.Context, b *otlpdata.Batch) error {
	if signal := b.Meta().Signal; signal != e.component.Signal {
		return pipeline.Permanent(fmt.Errorf("BUG: %s for %s %s", signal.Items(), e.component.Kind, e.component.Name()))
	}
	e.count.in.Add(float64(b.Len()))
	if e.queue != nil {
		err := e.put(ctx, b)
		if err != nil {
			e.count.settle(b.Len(), err, outcomeRefused)
		}
		return err
	}
	start := e.now()
	err := e.send(ctx, b)
	e.count.settle(b.Len(), err, outcomeRefused)
	if e.isStore.Load() && e.component.Signal == otlpdata.SignalTraces {
		e.countSaved(b, err, e.now().Sub(start))
	}
	return err
}

// put queues b without its metadata, which nothing after the queue needs.
func (e *ExporterEdge) put(ctx context.Context, b *otlpdata.Batch) (err error) {
	defer recoverCall(e.log, noop.Span{}, &err)
	return e.queue.put(ctx, b.WithMetadata(otlpdata.Metadata{}))
}

// send passes b to the exporter, in a span.
func (e *ExporterEdge) send(ctx context.Context, b *otlpdata.Batch) (err error) {
	ctx, span := e.tracer.StartBatch(ctx, e.spanName, b)
	defer recoverCall(e.log, span, &err)
	err = checked(e.next.Consume(ctx, b))
	selftrace.End(span, err)
	return nameLate(ctx, e.component, err)
}

// countSaved counts and logs a batch that was passed to a store. Both read the batch, which panics
// if a component has modified it against the rules. Such a panic does not change the outcome.
func (e *ExporterEdge) countSaved(b *otlpdata.Batch, err error, took time.Duration) {
	var ignored error
	defer recoverCall(e.log, noop.Span{}, &ignored)
	if err != nil {
		e.metrics.collector.countSaved(b, "err", took)
		return
	}
	e.metrics.collector.countSaved(b, "ok", took)
	if e.log.Core().Enabled(zap.DebugLevel) {
		e.logSpans(b)
	}
}

// logSpans logs a line for each span.
func (e *ExporterEdge) logSpans(b *otlpdata.Batch) {
	if err := b.Walk(spanLogger{e.log}); err != nil {
		e.log.Error("cannot log written spans", zap.Error(err))
	}
}

type spanLogger struct{ log *zap.Logger }

// Resource does nothing.
func (spanLogger) Resource(*otlpdata.Resource) error { return nil }

// Scope does nothing.
func (spanLogger) Scope(*otlpdata.Scope) error { return nil }

// Span logs the ids of the span.
func (l spanLogger) Span(s *otlpdata.Span) error {
	l.log.Debug(msgSpanWritten, zap.Stringer("trace-id", s.TraceID), zap.Stringer("span-id", s.SpanID))
	return nil
}
