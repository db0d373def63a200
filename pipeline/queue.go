package pipeline

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// sendingQueue holds batches between an exporter's edge and its sender, in memory or on disk.
type sendingQueue interface {
	// open is called before everything else, once.
	open() error
	// put returns when the batch is where the queue keeps it; errors are those of room.enter, or say that it could not be kept.
	put(ctx context.Context, b *otlpdata.Batch) error
	// take returns the oldest batch that nobody has taken, waiting for one until the queue is closed.
	take() (queued, bool)
	// done is told that the outcome of a batch is known.
	done(queued)
	// close ends put. A queue in memory can still be emptied, one on disk keeps what nobody has taken.
	close()
	// drain removes and returns what would be lost now.
	drain() []queued
	state() queueState
}

// queued is a batch in a queue.
type queued struct {
	batch *otlpdata.Batch
	load  load
	since time.Time
	spool any // what a queue on disk knows it by
}

// queueState is what metrics show of a queue.
type queueState struct {
	load
	requests int       // that wait
	oldest   time.Time // zero when nothing waits
}

// errEvicted is the outcome of what had to go for newer spans.
var errEvicted = errors.New("dropped from the full sending queue to make room for newer spans (overflow: drop_oldest)")

// memoryQueue is the queue in memory: all of it is lost with the process.
type memoryQueue struct {
	room
	now   func() time.Time
	evict func(queued) // told of batches dropped for newer ones

	queue   sync.Mutex
	changed *sync.Cond // an item, for one taker; or the end, for all
	items   []queued   // waiting to be sent
	ended   bool
}

func newMemoryQueue(c QueueConfig, now func() time.Time, evict func(queued)) *memoryQueue {
	q := &memoryQueue{room: room{config: c}, now: now, evict: evict}
	q.changed = sync.NewCond(&q.queue)
	return q
}

func (q *memoryQueue) open() error { return nil }

func (q *memoryQueue) put(ctx context.Context, b *otlpdata.Batch) error {
	i := queued{batch: b, load: q.config.load(b), since: q.now()}
	if err := q.enter(ctx, i.load, q.dropOldest); err != nil {
		return err
	}
	q.queue.Lock()
	defer q.queue.Unlock()
	if q.ended {
		q.leave(i.load)
		return ErrStopping
	}
	q.items = append(q.items, i)
	q.changed.Signal()
	return nil
}

func (q *memoryQueue) dropOldest() bool {
	q.queue.Lock()
	if len(q.items) == 0 {
		q.queue.Unlock()
		return false
	}
	i := q.pop()
	q.queue.Unlock()
	q.evict(i)
	q.done(i)
	return true
}

func (q *memoryQueue) pop() queued {
	i := q.items[0]
	q.items[0] = queued{} // the array behind items must not keep it
	q.items = q.items[1:]
	return i
}

func (q *memoryQueue) take() (queued, bool) {
	q.queue.Lock()
	defer q.queue.Unlock()
	for len(q.items) == 0 {
		if q.ended {
			return queued{}, false
		}
		q.changed.Wait()
	}
	return q.pop(), true
}

func (q *memoryQueue) done(i queued) { q.leave(i.load) }

func (q *memoryQueue) close() {
	q.room.close()
	q.queue.Lock()
	defer q.queue.Unlock()
	q.ended = true
	q.changed.Broadcast()
}

func (q *memoryQueue) drain() []queued {
	q.queue.Lock()
	defer q.queue.Unlock()
	left := q.items
	q.items = nil
	return left
}

func (q *memoryQueue) state() queueState {
	q.queue.Lock()
	defer q.queue.Unlock()
	s := queueState{load: q.room.load(), requests: len(q.items)}
	if len(q.items) > 0 {
		s.oldest = q.items[0].since
	}
	return s
}
