package delivery

import (
	"context"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// memoryQueue is a sending queue in memory. Its batches are lost if the process ends.
type memoryQueue struct {
	capacity *capacity
	now      func() time.Time
	evicted  func(queued) // called for batches that are dropped in favor of newer ones

	mu      sync.Mutex
	changed *sync.Cond // signaled for each new item, broadcast at the end
	items   []queued   // waiting to be sent
	ended   bool
}

func newMemoryQueue(c pipeline.QueueConfig, now func() time.Time, evicted func(queued), reportFull func(error)) *memoryQueue {
	q := &memoryQueue{capacity: newCapacity(c, reportFull), now: now, evicted: evicted}
	q.changed = sync.NewCond(&q.mu)
	return q
}

func (q *memoryQueue) open() error { return nil }

func (q *memoryQueue) put(ctx context.Context, b *otlpdata.Batch) error {
	i := queued{batch: b, load: q.capacity.loadOfBatch(b), since: q.now()}
	if err := q.capacity.acquire(ctx, i.load, q.dropOldest); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		q.capacity.release(i.load)
		return pipeline.ErrStopping
	}
	q.items = append(q.items, i)
	q.changed.Signal()
	return nil
}

// dropOldest drops the oldest waiting batch and reports whether there was one.
func (q *memoryQueue) dropOldest() bool {
	q.mu.Lock()
	if len(q.items) == 0 {
		q.mu.Unlock()
		return false
	}
	i := q.pop()
	q.mu.Unlock()
	q.evicted(i)
	q.done(i)
	return true
}

func (q *memoryQueue) pop() queued {
	i := q.items[0]
	q.items[0] = queued{} // release the batch: the underlying array stays
	q.items = q.items[1:]
	return i
}

func (q *memoryQueue) take() (queued, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) == 0 {
		if q.ended {
			return queued{}, false
		}
		q.changed.Wait()
	}
	return q.pop(), true
}

func (q *memoryQueue) done(i queued) { q.capacity.release(i.load) }

func (q *memoryQueue) close() {
	q.capacity.close()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.changed.Broadcast()
}

func (q *memoryQueue) drain() []queued {
	q.mu.Lock()
	defer q.mu.Unlock()
	left := q.items
	q.items = nil
	return left
}

func (q *memoryQueue) tight() <-chan struct{} { return q.capacity.tight }

func (q *memoryQueue) state() queueState {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := queueState{load: q.capacity.inUse(), requests: len(q.items)}
	if len(q.items) > 0 {
		s.oldest = q.items[0].since
	}
	return s
}
