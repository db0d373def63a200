package pipeline

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"google.golang.org/grpc/codes"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Outcomes of tracing_pipeline_spans_total.
const (
	outcomeReceived = "received" // receivers: offered
	outcomeAccepted = "accepted" // receivers: the client was told yes
	outcomeIn       = "in"       // exporters: offered
	outcomeSent     = "sent"     // exporters: stored, or taken by the next hop
	outcomeRefused  = "refused"  // the client, or who is before, was told no
	outcomeDropped  = "dropped"  // exporters: given up after they had been taken into a queue
	outcomeQueued   = "queued"   // exporters: in a queue now; a gauge of its own on /metrics
)

// outcomes counts the spans of one component.
type outcomes struct {
	vec       *prometheus.CounterVec
	component string
	kind      string
	in, out   prometheus.Counter
}

func newOutcomes(t *telemetry, key componentKey, in, out string) outcomes {
	o := outcomes{vec: t.spans, component: key.id.String(), kind: key.kind.String()}
	o.in = t.spans.WithLabelValues(o.component, o.kind, in, "")
	o.out = t.spans.WithLabelValues(o.component, o.kind, out, "")
	return o
}

// settle counts what became of n spans that were counted as in: the counters of a component add up as soon as nothing is in flight. bad is
// the outcome of those that err is about, which is returned as their number.
func (o *outcomes) settle(n int, err error, bad string) int {
	failed := 0
	if err != nil {
		failed = n
		var p *Partial
		var u *unfinished
		switch {
		case errors.As(err, &p):
			failed = max(0, min(p.Rejected, n))
		case bad == outcomeDropped && errors.As(err, &u): // nobody sends again what was taken
			failed = max(0, n-u.taken)
		}
		o.vec.WithLabelValues(o.component, o.kind, bad, reason(err)).Add(float64(failed))
	}
	o.out.Add(float64(n - failed))
	return failed
}

// reason is the value of the label reason for an error: what class it is, not what it says.
func reason(err error) string {
	var partial *Partial
	switch c := classify(err); {
	case errors.Is(err, ErrOverBudget):
		return "over_budget"
	case errors.Is(err, ErrStopping):
		return "stopping"
	case errors.Is(err, errBug):
		return "bug"
	case errors.Is(err, errEvicted):
		return "overflow"
	case c.code == codes.Canceled:
		return "canceled"
	case c.code == codes.DeadlineExceeded:
		return "deadline"
	case c.large:
		return "too_large"
	case c.permanent(), errors.As(err, &partial): // what is rejected of a partial success is rejected for good
		return "permanent"
	case c.code == codes.ResourceExhausted:
		return "overloaded"
	}
	return "unavailable"
}

// errBug is wrapped by the error that a panic of a component becomes.
var errBug = errors.New("internal error")

// guard calls c.Consume and turns a panic into an error, so that a bug in one component costs one batch, not the process.
func guard(ctx context.Context, c Consumer, b *otlpdata.Batch, log *zap.Logger) (err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("BUG: Consume panicked; the batch is refused", zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
			err = fmt.Errorf("%w in Consume", errBug)
		}
	}()
	return c.Consume(ctx, b)
}

// guarded stands in front of a processor, which may be called by a goroutine of the one before: a panic there would end the process.
type guarded struct {
	next Consumer
	log  *zap.Logger
}

// Consume passes on.
func (g *guarded) Consume(ctx context.Context, b *otlpdata.Batch) error {
	return guard(ctx, g.next, b, g.log)
}

// receiverEdge stands between a receiver and its pipelines.
type receiverEdge struct {
	next  Consumer
	tel   *telemetry
	count outcomes
	log   *zap.Logger
	// collects: the way of the spans ends in this process, at least in one of the branches. Where all of them only pass the spans on, as in
	// an agent, nothing is counted or logged as the collector's.
	collects atomic.Bool
}

// Consume counts, passes on, and counts how it ended.
func (e *receiverEdge) Consume(ctx context.Context, b *otlpdata.Batch) error {
	e.offered(b)
	err := guard(ctx, e.next, b, e.log)
	e.settle(b, err)
	return err
}

// consumeJoined is Consume for batches that travel as one.
func (e *receiverEdge) consumeJoined(ctx context.Context, batches []*otlpdata.Batch, outcome func([]*otlpdata.Batch, error)) {
	for _, b := range batches {
		e.offered(b)
	}
	ConsumeJoined(ctx, &guarded{e.next, e.log}, batches, func(of []*otlpdata.Batch, err error) {
		for _, b := range of {
			e.settle(b, err)
		}
		outcome(of, err)
	})
}

func (e *receiverEdge) offered(b *otlpdata.Batch) {
	e.count.in.Add(float64(b.Len()))
	if e.collects.Load() {
		e.tel.collector.received(b)
	}
}

// settle counts and logs what became of a batch that was offered.
func (e *receiverEdge) settle(b *otlpdata.Batch, err error) {
	e.count.settle(b.Len(), err, outcomeRefused)
	if !e.collects.Load() {
		return
	}
	if err != nil {
		e.tel.collector.rejected(b, err)
	}
	if ce := e.log.Check(zap.DebugLevel, msgBatchProcessed); ce != nil {
		ce.Write(zap.Bool("ok", err == nil), zap.Error(err))
	}
}
