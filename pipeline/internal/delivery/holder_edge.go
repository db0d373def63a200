package delivery

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/errclass"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Delays between attempts to pass on spans that a processor has held.
const (
	firstHeldRetry = 100 * time.Millisecond
	maxHeldRetry   = 5 * time.Second
)

// msgHeldDropped is logged when spans of a [pipeline.Holder] were lost.
const msgHeldDropped = "spans that a processor held were dropped"

// HolderEdge is the Consumer behind a [pipeline.Holder]. No client resends its spans, so the edge
// retries after temporary errors, and counts spans that are refused permanently as dropped.
type HolderEdge struct {
	gate    *Gate
	metrics *Metrics
	count   outcomes
	holder  pipeline.Holder
	ended   atomic.Bool          // all spans are settled; further spans are refused
	limit   func() time.Duration // of retries of one batch
	now     func() time.Time
	log     *zap.Logger
	lines   *pipeline.RepeatLog
	letters func() *DeadLetters
}

// HolderOptions are the parameters of NewHolderEdge.
type HolderOptions struct {
	Component   Component
	Settings    pipeline.Settings // of the processor
	Metrics     *Metrics
	RetryLimit  func() time.Duration
	DeadLetters func() *DeadLetters
}

// NewHolderEdge returns an edge that passes spans to gate.
func NewHolderEdge(gate *Gate, o HolderOptions) *HolderEdge {
	return &HolderEdge{gate: gate, metrics: o.Metrics, count: newOutcomes(o.Metrics, o.Component, outcomeIn, outcomeSent),
		limit: o.RetryLimit, now: o.Settings.Env.Now, log: o.Settings.Logger, lines: pipeline.NewRepeatLog(o.Settings),
		letters: o.DeadLetters}
}

// Lead begins to show what h holds.
func (e *HolderEdge) Lead(h pipeline.Holder) {
	e.holder = h
	e.metrics.holders.add(e.count.component, h)
}

// Forget undoes Lead. It is called after the holder has stopped; spans that it still holds are
// lost.
func (e *HolderEdge) Forget() {
	if e.ended.Swap(true) {
		return
	}
	if left := e.holder.Held(); left > 0 {
		e.Dropped(int(left), pipeline.DroppedByStop)
	}
	e.metrics.holders.remove(e.count.component, e.holder)
	e.lines.Close()
}

// Dropped counts spans that the holder has dropped. Unless it dropped them on purpose, they are
// lost.
func (e *HolderEdge) Dropped(spans int, reason string) {
	e.count.add(outcomeDropped, reason, spans)
	if reason != pipeline.DroppedByPolicy {
		e.metrics.collector.spansDropped.Add(float64(spans))
		e.lines.Error(msgHeldDropped, zap.Int("spans", spans), zap.String("reason", reason))
	}
}

// Made counts spans that the holder has created itself.
func (e *HolderEdge) Made(spans int) { e.count.in.Add(float64(spans)) }

// Consume passes on one batch like ConsumeJoined.
func (e *HolderEdge) Consume(ctx context.Context, b *otlpdata.Batch) (err error) {
	e.ConsumeJoined(ctx, []*otlpdata.Batch{b}, func(_ []*otlpdata.Batch, e error) { err = e })
	return err
}

// ConsumeJoined passes on batches as one. It retries batches that are refused with a temporary
// error, until the limit for retries is reached or ctx ends. It counts and reports the outcome of
// each batch.
func (e *HolderEdge) ConsumeJoined(ctx context.Context, batches []*otlpdata.Batch, outcome func([]*otlpdata.Batch, error)) {
	if e.ended.Load() {
		outcome(batches, pipeline.ErrStopping)
		return
	}
	start, delay := e.now(), firstHeldRetry
	for {
		var again []*otlpdata.Batch
		var last error
		pipeline.ConsumeJoined(ctx, e.gate, batches, func(of []*otlpdata.Batch, err error) {
			if err != nil && retryable(err) {
				again, last = append(again, of...), err
				return
			}
			e.settle(of, err)
			outcome(of, err)
		})
		if len(again) == 0 {
			return
		}
		if err := e.pause(ctx, start, max(delay, min(errclass.Of(last).Requested, maxHeldRetry))); err != nil {
			if u := (*unfinished)(nil); errors.As(last, &u) {
				last = u.err // the exporter has counted all spans as refused, and may have joined them with others
			}
			err = fmt.Errorf("%w: %w", err, last)
			e.settle(again, err)
			outcome(again, err)
			return
		}
		batches, delay = again, min(2*delay, maxHeldRetry)
	}
}

// errHeldTooLong is the error of spans that were refused until retries ended.
var errHeldTooLong = errors.New("gave up after service.limits.held_retry")

// pause waits before the next attempt, or returns why there is none.
func (e *HolderEdge) pause(ctx context.Context, start time.Time, d time.Duration) error {
	if d > e.limit()-e.now().Sub(start) {
		return errHeldTooLong
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", pipeline.ErrStopping, context.Cause(ctx))
	}
}

// settle counts the outcome of batches, unless Forget has counted them as dropped. It logs dropped
// spans, and writes batches that were refused permanently as dead letters.
func (e *HolderEdge) settle(batches []*otlpdata.Batch, err error) {
	if e.ended.Load() {
		return
	}
	for _, b := range batches {
		dropped := e.count.settle(b.Len(), err, outcomeDropped)
		if dropped == 0 {
			continue
		}
		e.metrics.collector.spansDropped.Add(float64(dropped))
		fields := []zap.Field{zap.Int("spans", dropped), zap.String("reason", reason(err)), zap.Error(err)}
		if partial := (*pipeline.Partial)(nil); !errors.As(err, &partial) && pipeline.IsPermanent(err) {
			if file := e.letters().write(e.count.component.ID, b, e.log); file != "" {
				fields = append(fields, zap.String("dead-letter", file))
			}
		}
		e.lines.Error(msgHeldDropped, fields...)
	}
}
