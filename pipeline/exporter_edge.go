package pipeline

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// exporterEdge stands in front of an exporter. It counts, and for an exporter that sends over a network it tries again and queues:
//
//	Consume ──▶ counters ──▶ queue ──▶ retry ──▶ timeout ──▶ exporter
//
// Without a queue the caller waits for the outcome and is told it. With one, a caller is told yes when its batch is in the queue; what
// becomes of it later is counted as sent, or as dropped with a reason.
type exporterEdge struct {
	config QueueConfig // of the queue; zero: there is none
	gate   *link       // to the exporter
	sender *sender     // in front of the gate; nil: attempts are not the framework's business
	next   Consumer    // the sender, or the gate
	tel    *telemetry
	key    componentKey
	count  outcomes
	stores atomic.Bool // the exporter is a store
	now    func() time.Time
	log    *zap.Logger
	dead   func() *deadLetters

	started     bool // known to who starts and stops
	ended       atomic.Bool
	queue       sendingQueue // nil: none
	queueMemory int64        // the most that it holds, in bytes
	senders     int          // how many read it
	consumers   sync.WaitGroup
	giveUp      context.CancelFunc // ends the sends of the consumers
	stopping    chan struct{}      // closed when a queue on disk is stopped; nil: the queue is in memory
}

// newExporterEdge makes the edge for an exporter.
func newExporterEdge(a *App, n *node, set Settings, queue QueueConfig) *exporterEdge {
	e := &exporterEdge{config: queue, gate: &link{}, tel: a.tel, key: n.config.key, log: set.Logger, now: set.Env.Now, dead: a.dead.Load,
		count: newOutcomes(a.tel, n.config.key, outcomeIn, outcomeSent)}
	e.next = e.gate
	if _, ok := n.config.value.(deliverable); ok {
		e.sender = newSender(e.gate, set.Env, a.tel.retries.WithLabelValues(n.config.key.id.String()).Inc)
		e.next = e.sender
	}
	if queue.Enabled {
		set.Report = a.reporter(n.String()+ofQueue, set.Logger, &e.ended)
		e.setQueue(queue, set)
		e.sender.stopping = e.stopping
	}
	e.lead(n)
	return e
}

// lead makes the edge, which must be new or have its gate shut, lead to the exporter of a node, and opens its gate.
func (e *exporterEdge) lead(n *node) {
	if d, ok := n.config.value.(deliverable); ok {
		e.sender.set(d.delivery())
	}
	e.stores.Store(n.keep == KeepMemory || n.keep == KeepStored || n.keep == KeepWritten)
	e.gate.open(n.value.(Consumer))
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
	if e.stores.Load() {
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
