package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// stopGrace is how long the end of sends that were given up is waited for: an exporter that ignores its context must not hold up the process.
const stopGrace = 5 * time.Second

// lastSends is how long attempts that are under way may take when a queue on disk is stopped: what has no answer by then is sent again after the
// next start.
const lastSends = 2 * time.Second

// diskQueueMemory is what a queue on disk holds in memory, in bytes, beside what is being sent: two of its files.
const diskQueueMemory = 48 << 20

// setQueue puts a queue between the edge and the sender.
func (e *exporterEdge) setQueue(c QueueConfig, set Settings) {
	e.senders = c.NumConsumers
	evict := func(i queued) { e.settle(i.batch, errEvicted) }
	if c.Storage != storageDisk {
		e.queue, e.queueMemory = newMemoryQueue(c, set.Env.Now, evict), int64(c.MaxBytes)
		return
	}
	e.queue, e.stopping = newDiskQueue(c, set, evict, e.lost, e.tel.lost.WithLabelValues(e.key.id.String())), make(chan struct{})
	e.queueMemory = min(diskQueueMemory, int64(c.MaxBytes))
}

// lost counts spans that were in the queue and that the disk has lost; below zero: that it has given back.
func (e *exporterEdge) lost(spans int64) {
	if spans < 0 {
		e.count.in.Add(float64(-spans))
		return
	}
	e.count.vec.WithLabelValues(e.count.component, e.count.kind, outcomeDropped, "lost").Add(float64(spans))
	e.tel.collector.spansDropped.Add(float64(spans))
}

// start opens the queue and begins to read it. It is called after the exporter has started. What an earlier process has left counts as
// having come in; what an earlier queue of this process has left on disk has been counted.
func (e *exporterEdge) start() error {
	if e.queue == nil {
		e.started = true
		return nil
	}
	if err := e.queue.open(); err != nil {
		return err
	}
	known := e.tel.queues.enter(e.key, e.queue)
	e.count.in.Add(float64(max(e.queue.state().spans-known, 0)))
	var ctx context.Context
	ctx, e.giveUp = context.WithCancel(context.Background())
	for range e.senders {
		e.consumers.Go(func() { e.consume(ctx) })
	}
	e.started = true
	return nil
}

// consume sends what is in the queue until there is nothing more to take.
func (e *exporterEdge) consume(ctx context.Context) {
	for {
		item, ok := e.queue.take()
		if !ok {
			return
		}
		err := guard(ctx, e.next, item.batch, e.log)
		switch {
		case err == nil:
		case isClosed(e.stopping) && retryable(err):
			return // it stays in the queue
		case ctx.Err() != nil && e.stopping == nil:
			err = fmt.Errorf("%w: %w", ErrStopping, err)
		}
		e.settle(item.batch, err)
		e.queue.done(item)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
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
		if file := e.dead().keep(e.count.component, b, e.log); file != "" {
			fields = append(fields, zap.String("dead-letter", file))
		}
	}
	e.log.Error("spans were dropped", fields...)
}

// stop takes nothing more. A queue in memory is emptied: when ctx ends first, what is left is counted as dropped, and the error says how much. One
// on disk keeps what is left.
func (e *exporterEdge) stop(ctx context.Context) error {
	e.started = false
	e.ended.Store(true)
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
	if q, ok := e.queue.(*diskQueue); ok {
		return e.stopDisk(ctx, q, done)
	}
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
	if !within(stopGrace, done) {
		return fmt.Errorf("%w; sends are still under way: the exporter does not end them with their context", err)
	}
	return err
}

// holdsSpans reports whether the process would lose what is in the queue when it did not send it.
func (e *exporterEdge) holdsSpans() bool { return e.queue != nil && e.stopping == nil }

// stopDisk lets attempts that are under way end, soon, and closes the files. Nobody waits for another attempt.
func (e *exporterEdge) stopDisk(ctx context.Context, q *diskQueue, done <-chan struct{}) error {
	close(e.stopping)
	last, cancel := context.WithTimeout(ctx, lastSends)
	defer cancel()
	var err error
	select {
	case <-done:
	case <-last.Done():
		e.giveUp()
		if !within(stopGrace, done) {
			err = errors.New("sends are still under way: the exporter does not end them with their context; their batches are sent again after the next start")
		}
	}
	if left := q.state(); left.spans > 0 {
		e.log.Info("spans stay in the sending queue until the next start", zap.Int64("spans", left.spans), zap.Int64("bytes", left.bytes))
	}
	return errors.Join(err, q.shut())
}

// within waits for done, no longer than d, and reports whether it came.
func within(d time.Duration, done <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}
