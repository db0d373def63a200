package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// QueueConfig are the keys below sending_queue.
type QueueConfig struct {
	Enabled         bool     `yaml:"enabled" doc:"Whether there is a queue; false is as if the block were not there."`
	NumConsumers    int      `yaml:"num_consumers" doc:"How many batches are sent at once."`
	QueueSize       int64    `yaml:"queue_size" doc:"How much the queue holds, in units of sizer."`
	Sizer           string   `yaml:"sizer" doc:"What queue_size counts: bytes, items (spans) or requests."`
	MaxBytes        ByteSize `yaml:"max_bytes" doc:"Greatest size of the queue in memory, whatever the sizer counts."`
	BlockOnOverflow bool     `yaml:"block_on_overflow" doc:"Whether callers wait for room when the queue is full; otherwise they are refused as overloaded."`
}

// DefaultQueue returns the defaults of a queue that a file asks for.
func DefaultQueue() QueueConfig {
	return QueueConfig{Enabled: true, NumConsumers: 10, QueueSize: 1000, Sizer: sizerRequests, MaxBytes: 64 << 20}
}

// What queue_size may count.
const (
	sizerBytes    = "bytes"
	sizerItems    = "items"
	sizerRequests = "requests"
)

// Validate checks the sizes.
func (c *QueueConfig) Validate() error {
	var errs []error
	if c.NumConsumers < 1 || c.NumConsumers > 10_000 {
		errs = append(errs, BadKey("num_consumers", "must be from 1 to 10000, not %d", c.NumConsumers))
	}
	if c.QueueSize < 1 {
		errs = append(errs, BadKey("queue_size", "must be above 0, not %d", c.QueueSize))
	}
	if c.Sizer != sizerBytes && c.Sizer != sizerItems && c.Sizer != sizerRequests {
		errs = append(errs, BadKey("sizer", "%q is not a sizer; write bytes, items or requests", c.Sizer))
	}
	if c.MaxBytes < 1 {
		errs = append(errs, BadKey("max_bytes", "must be above 0"))
	}
	return errors.Join(errs...)
}

// errQueueFull refuses what a queue has no room for.
var errQueueFull = errors.New("the sending queue is full")

// queue holds batches in memory between an exporter's edge and its sender. What is taken leaves the count only when its outcome is known,
// so that the queue's size is what a crash would lose. Callers that wait for room get it in the order in which they came: a large request
// is not overtaken for ever by small ones.
type queue struct {
	config QueueConfig
	now    func() time.Time

	mu      sync.Mutex
	changed *sync.Cond // an item, for one taker; or the end, for all
	items   []queued   // waiting to be sent
	callers []*caller  // waiting for room; only with block_on_overflow
	size    int64      // in units of sizer, of items and of what is being sent
	bytes   int64
	spans   int64
	closed  bool
}

type queued struct {
	batch *otlpdata.Batch
	size  int64
	bytes int64
	since time.Time
}

// caller is a put that waits for room.
type caller struct {
	item   queued
	answer chan error // of capacity 1
}

func newQueue(c QueueConfig, now func() time.Time) *queue {
	q := &queue{config: c, now: now}
	q.changed = sync.NewCond(&q.mu)
	return q
}

func (q *queue) measure(b *otlpdata.Batch) queued {
	i := queued{batch: b, bytes: int64(b.Size()), since: q.now()}
	switch q.config.Sizer {
	case sizerBytes:
		i.size = i.bytes
	case sizerItems:
		i.size = int64(b.Len())
	default:
		i.size = 1
	}
	return i
}

// put adds a batch. Without room it waits, with block_on_overflow until ctx ends, or returns an [Overloaded] error; what is larger than
// the queue itself is refused for good. After close it returns [ErrStopping].
func (q *queue) put(ctx context.Context, b *otlpdata.Batch) error {
	i := q.measure(b)
	if i.size > q.config.QueueSize || i.bytes > int64(q.config.MaxBytes) {
		return Permanent(fmt.Errorf("%w: the request is larger than sending_queue", errQueueFull))
	}
	c, err := q.tryPut(i)
	if c == nil {
		return err
	}
	select {
	case err := <-c.answer:
		return err
	case <-ctx.Done():
		return q.leave(c)
	}
}

// tryPut adds an item, or returns why not, or the caller that waits for room from now on.
func (q *queue) tryPut(i queued) (*caller, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return nil, ErrStopping
	case len(q.callers) == 0 && q.fits(i):
		q.add(i)
		return nil, nil
	case !q.config.BlockOnOverflow:
		return nil, Overloaded(errQueueFull, 0)
	}
	c := &caller{item: i, answer: make(chan error, 1)}
	q.callers = append(q.callers, c)
	return c, nil
}

func (q *queue) fits(i queued) bool {
	return i.size <= q.config.QueueSize-q.size && i.bytes <= int64(q.config.MaxBytes)-q.bytes
}

func (q *queue) add(i queued) {
	q.items = append(q.items, i)
	q.size += i.size
	q.bytes += i.bytes
	q.spans += int64(i.batch.Len())
	q.changed.Signal()
}

// admit lets in those who wait for room, as far as there is some.
func (q *queue) admit() {
	for len(q.callers) > 0 && q.fits(q.callers[0].item) {
		q.add(q.callers[0].item)
		q.callers[0].answer <- nil
		q.callers = slices.Delete(q.callers, 0, 1)
	}
}

// leave ends the waiting of a caller and returns its answer: the queue may have let it in, or have been closed, at the same moment.
func (q *queue) leave(c *caller) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.callers, c)
	if i < 0 {
		return <-c.answer
	}
	q.callers = slices.Delete(q.callers, i, i+1)
	q.admit() // those behind it may need less room
	return Overloaded(fmt.Errorf("%w, also after waiting", errQueueFull), 0)
}

// take removes the oldest batch, waiting for one. It returns false when the queue is closed and empty.
func (q *queue) take() (queued, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) == 0 {
		if q.closed {
			return queued{}, false
		}
		q.changed.Wait()
	}
	i := q.items[0]
	q.items[0] = queued{} // the array behind items must not keep it
	q.items = q.items[1:]
	return i, true
}

// done gives back the room of a batch that take returned: its outcome is known.
func (q *queue) done(i queued) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.size -= i.size
	q.bytes -= i.bytes
	q.spans -= int64(i.batch.Len())
	q.admit()
}

// close ends the queue: nothing more is put, what is left can be taken.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for _, c := range q.callers {
		c.answer <- ErrStopping
	}
	q.callers = nil
	q.changed.Broadcast()
}

// drain removes and returns everything that waits.
func (q *queue) drain() []queued {
	q.mu.Lock()
	defer q.mu.Unlock()
	left := q.items
	q.items = nil
	return left
}

// state is what metrics show of a queue.
type queueState struct {
	bytes, spans int64
	requests     int
	oldest       time.Time // zero when nothing waits
}

func (q *queue) state() queueState {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := queueState{bytes: q.bytes, spans: q.spans, requests: len(q.items)}
	if len(q.items) > 0 {
		s.oldest = q.items[0].since
	}
	return s
}
