package delivery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/queueopt"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// errQueueFull is the error of a batch that does not fit into its queue.
var errQueueFull = errors.New("sending queue is full")

// capacity limits what a sending queue holds. A batch that is taken from the queue uses capacity
// until its outcome is known, so that the capacity covers everything that a crash affects. Waiting
// callers get capacity in the order of arrival, so that small batches do not overtake a large one
// forever.
type capacity struct {
	config pipeline.QueueConfig // with defaults
	report func(error)          // reports that the queue is almost full or, with nil, that it no longer is
	tight  chan struct{}        // has a value after a batch almost filled the queue or did not fit; capacity 1

	mu      sync.Mutex
	used    load
	waiters []*waiter // with `overflow: block`
	almost  bool      // the last report was an error
	closed  bool
}

// A queue becomes almost full at the higher part of its limits, and stays so until it falls below
// the lower one, so that a load near a limit does not toggle the state constantly.
const (
	almostFull = 90 // percent
	notFull    = 80 // percent
)

var errAlmostFull = fmt.Errorf("sending_queue is more than %d %% full", almostFull)

// load is the capacity that one or several batches use.
type load struct {
	size         int64 // in units of sizer
	bytes, spans int64
}

// waiter is a caller that waits for capacity.
type waiter struct {
	load   load
	answer chan error // has a buffer of 1
}

func newCapacity(c pipeline.QueueConfig, report func(error)) *capacity {
	return &capacity{config: c, report: report, tight: make(chan struct{}, 1)}
}

func (c *capacity) loadOfBatch(b *otlpdata.Batch) load {
	return c.loadOf(int64(b.Size()), int64(b.Len()))
}

// loadOf returns the load of one batch.
func (c *capacity) loadOf(bytes, spans int64) load {
	l := load{size: 1, bytes: bytes, spans: spans}
	switch c.config.Sizer {
	case queueopt.SizerBytes:
		l.size = bytes
	case queueopt.SizerItems:
		l.size = spans
	}
	return l
}

// acquire takes capacity for a batch. If there is not enough, the configuration decides: with
// `overflow: block`, acquire waits until ctx ends; with `overflow: drop_oldest`, it calls evict to
// free some as long as evict returns true. In all other cases it returns an overloaded error. A
// batch that is larger than the queue is refused permanently. After close, acquire returns
// ErrStopping.
func (c *capacity) acquire(ctx context.Context, l load, evict func() bool) error {
	if c.config.QueueSize > 0 && l.size > c.config.QueueSize || l.bytes > int64(c.config.MaxBytes) {
		return pipeline.Permanent(fmt.Errorf("%w: request is larger than the limits of sending_queue", errQueueFull))
	}
	for {
		w, err := c.tryAcquire(l)
		switch {
		case w != nil:
			return c.wait(ctx, w)
		case err == nil || c.config.Overflow != queueopt.OverflowDropOldest || !errors.Is(err, errQueueFull) || !evict():
			return err
		}
	}
}

// tryAcquire takes capacity. If there is not enough, it returns an error, or a waiter with
// `overflow: block`.
func (c *capacity) tryAcquire(l load) (*waiter, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, pipeline.ErrStopping
	case len(c.waiters) == 0 && c.fits(l):
		c.add(l)
		return nil, nil
	}
	c.signalTight()
	if c.config.Overflow != queueopt.OverflowBlock {
		return nil, pipeline.Overloaded(errQueueFull, 0)
	}
	w := &waiter{load: l, answer: make(chan error, 1)}
	c.waiters = append(c.waiters, w)
	return w, nil
}

func (c *capacity) fits(l load) bool {
	return (c.config.QueueSize == 0 || l.size <= c.config.QueueSize-c.used.size) && l.bytes <= int64(c.config.MaxBytes)-c.used.bytes
}

// force takes capacity even if there is not enough, for batches that are already in the queue.
func (c *capacity) force(l load) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(l)
}

func (c *capacity) add(l load) {
	c.used.size += l.size
	c.used.bytes += l.bytes
	c.used.spans += l.spans
	if l.size > 0 && c.uses(almostFull) {
		c.signalTight()
	}
	switch {
	case !c.almost && c.uses(almostFull):
		c.almost = true
		c.report(errAlmostFull)
	case c.almost && !c.uses(notFull):
		c.almost = false
		c.report(nil)
	}
}

func (c *capacity) signalTight() {
	select {
	case c.tight <- struct{}{}:
	default:
	}
}

// uses reports whether the queue uses more than a part of one of its limits.
func (c *capacity) uses(percent int64) bool {
	above := func(used, limit int64) bool { return limit > 0 && used > limit/100*percent+limit%100*percent/100 }
	return above(c.used.size, c.config.QueueSize) || above(c.used.bytes, int64(c.config.MaxBytes))
}

func (c *capacity) wait(ctx context.Context, w *waiter) error {
	select {
	case err := <-w.answer:
		return err
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(c.waiters, w)
	if i < 0 { // the waiter was admitted at the same time
		return <-w.answer
	}
	c.waiters = slices.Delete(c.waiters, i, i+1)
	c.admit() // the next waiters may need less
	return pipeline.Overloaded(fmt.Errorf("%w: no space became free in time", errQueueFull), 0)
}

// release returns capacity and admits waiters that fit.
func (c *capacity) release(l load) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(load{-l.size, -l.bytes, -l.spans})
	c.admit()
}

func (c *capacity) admit() {
	for len(c.waiters) > 0 && c.fits(c.waiters[0].load) {
		c.add(c.waiters[0].load)
		c.waiters[0].answer <- nil
		c.waiters = slices.Delete(c.waiters, 0, 1)
	}
}

// close refuses waiters and all later callers.
func (c *capacity) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, w := range c.waiters {
		w.answer <- pipeline.ErrStopping
	}
	c.waiters = nil
}

// inUse returns the capacity that is used.
func (c *capacity) inUse() load {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used
}
