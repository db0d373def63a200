package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/queueopt"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// canceledSendWait is how long Stop waits for canceled sends to return: an exporter that ignores
// its context must not delay the end of the process.
const canceledSendWait = 5 * time.Second

// diskSendWait is how long current attempts may take when a queue on disk is stopped. Batches
// without a response by then are resent after the next start.
const diskSendWait = 2 * time.Second

// A queue on disk reads one file at a time. The size of its files is 1/queueFilePart of the
// available memory, but at most the maximum. Its memory, without batches that are being sent, is
// about filesInMemory files.
const (
	queueFilePart    = 32
	maxQueueFileSize = 16 << 20
	filesInMemory    = 3
)

func queueFileSize() int64 { return int64(pipeline.MemoryShare(queueFilePart, maxQueueFileSize)) }

// setQueue adds a queue between the edge and the sender. reportFull reports that the queue is
// almost full or, with nil, that it no longer is.
func (e *ExporterEdge) setQueue(set pipeline.Settings, reportFull func(error)) {
	c := e.config
	e.senders = c.NumConsumers
	evicted := func(i queued) { e.settle(i.batch, errEvicted) }
	if c.Storage != queueopt.StorageDisk {
		e.queue, e.queueMemory = newMemoryQueue(c, set.Env.Now, evicted, reportFull), int64(c.MaxBytes)
		return
	}
	e.queue = newDiskQueue(c, set, evicted, e.countLost, e.metrics.lost.WithLabelValues(e.component.Name()), reportFull)
	e.stopping = make(chan struct{})
	e.queueMemory = filesInMemory * queueFileSize()
	if _, joins := c.Batch.Get(); joins {
		e.queueMemory += maxJoining
	}
	e.queueMemory = min(e.queueMemory, int64(c.MaxBytes))
}

// countLost counts queued spans that were lost on disk. A negative number counts spans that were
// lost and have been recovered.
func (e *ExporterEdge) countLost(spans int64) {
	if spans < 0 {
		e.count.in.Add(float64(-spans))
		return
	}
	e.count.add(outcomeDropped, "lost", int(spans))
	e.countDropped(int(spans))
}

// countDropped counts spans in the metrics of collectors, which have none for log records.
func (e *ExporterEdge) countDropped(n int) {
	if e.component.Signal == otlpdata.SignalTraces {
		e.metrics.collector.spansDropped.Add(float64(n))
	}
}

// Start opens the queue, if there is one, and begins to send from it. It is called after the
// exporter has started. Batches that an earlier process left in the queue are counted as `in`;
// batches that an earlier queue of this process left are already counted.
func (e *ExporterEdge) Start() error {
	if e.queue == nil {
		e.started = true
		return nil
	}
	if err := e.queue.open(); err != nil {
		return err
	}
	known := e.metrics.queues.add(e.component, e.queue)
	e.count.in.Add(float64(max(e.queue.state().spans-known, 0)))
	var ctx context.Context
	ctx, e.cancelSends = context.WithCancel(context.Background())
	if batch, on := e.config.Batch.Get(); on {
		e.startJoining(ctx, batch)
	} else {
		for range e.senders {
			e.consumers.Go(func() { e.sendQueued(ctx) })
		}
	}
	e.started = true
	return nil
}

// sendQueued sends batches from the queue until it is closed.
func (e *ExporterEdge) sendQueued(ctx context.Context) {
	for {
		item, ok := e.queue.take()
		if !ok {
			return
		}
		err, stays := e.outcomeOf(ctx, e.send(ctx, item.batch))
		if stays {
			return
		}
		e.settle(item.batch, err)
		e.queue.done(item)
	}
}

// outcomeOf returns the outcome of a batch whose attempt ended with err, or that the batch stays in
// the queue on disk because the edge is being stopped.
func (e *ExporterEdge) outcomeOf(ctx context.Context, err error) (outcome error, stays bool) {
	switch {
	case err == nil:
	case isClosed(e.stopping) && retryable(err):
		return nil, true
	case ctx.Err() != nil && e.stopping == nil:
		err = fmt.Errorf("%w: %w", pipeline.ErrStopping, err)
	}
	return err, false
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// settle counts the outcome of a batch that was queued. It logs dropped spans, and writes batches
// that were refused permanently as dead letters.
func (e *ExporterEdge) settle(b *otlpdata.Batch, err error) {
	dropped := e.count.settle(b.Len(), err, outcomeDropped)
	if dropped == 0 {
		return
	}
	e.countDropped(dropped)
	fields := []zap.Field{zap.Int(b.Meta().Signal.Key(), dropped), zap.String("reason", reason(err)), zap.Error(err)}
	if partial := (*pipeline.Partial)(nil); !errors.As(err, &partial) && pipeline.IsPermanent(err) {
		if file := e.letters().write(e.component.ID, b, e.log); file != "" {
			fields = append(fields, zap.String("dead-letter", file))
		}
	}
	e.log.Error(b.Meta().Signal.Items()+" were dropped", fields...)
}

// Stop stops sending. A queue in memory is emptied first; if ctx ends before, the remaining batches
// are counted as dropped, and the error says how many. A queue on disk keeps remaining batches.
func (e *ExporterEdge) Stop(ctx context.Context) error {
	e.started = false
	e.ended.Store(true)
	if e.queue == nil || e.cancelSends == nil {
		return nil
	}
	defer e.cancelSends()
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
		e.settle(item.batch, pipeline.ErrStopping)
		e.queue.done(item)
	}
	if lost == 0 && e.queue.state().spans == 0 {
		<-done
		return nil // the queue was empty; ctx had ended before
	}
	e.cancelSends()
	err := fmt.Errorf("sending queue not emptied in time: dropped %d queued %s: %w", lost, e.component.Signal.Items(), ctx.Err())
	if !waitFor(canceledSendWait, done) {
		return fmt.Errorf("%w; exporter is still sending after its context was canceled", err)
	}
	return err
}

// stopDisk gives current attempts a short time to finish, then closes the queue. Batches are not
// retried.
func (e *ExporterEdge) stopDisk(ctx context.Context, q *diskQueue, done <-chan struct{}) error {
	close(e.stopping)
	last, cancel := context.WithTimeout(ctx, diskSendWait)
	defer cancel()
	var err error
	select {
	case <-done:
	case <-last.Done():
		e.cancelSends()
		if !waitFor(canceledSendWait, done) {
			err = errors.New("exporter is still sending after its context was canceled; its batches are resent after the next start")
		}
	}
	if left := q.state(); left.spans > 0 {
		signal := e.component.Signal
		e.log.Info(signal.Items()+" remain in the sending queue until the exporter is started again", zap.Int64(signal.Key(), left.spans),
			zap.Int64("bytes", left.bytes))
	}
	return errors.Join(err, q.shut())
}

// LosesSpans reports whether queued spans are lost if the edge is stopped before they are sent.
func (e *ExporterEdge) LosesSpans() bool { return e.queue != nil && e.stopping == nil }

// QueuedSpans returns the number of spans in the queue.
func (e *ExporterEdge) QueuedSpans() int64 { return e.queue.state().spans }

// ForgetQueue removes the queue from the metrics. It is called after Stop if the queue is empty and
// will not be reused.
func (e *ExporterEdge) ForgetQueue() { e.metrics.queues.remove(e.component, e.queue) }
