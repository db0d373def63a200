package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// errQueueFull refuses what a queue has no room for.
var errQueueFull = errors.New("the sending queue is full")

// room is the space of a sending queue. What is taken out of the queue gives its room back only when its outcome is known, so that what is
// in the room is what a crash would have to do with. Callers that wait for room get it in the order in which they came: a large batch is not
// overtaken for ever by small ones.
type room struct {
	config QueueConfig // whole

	mu      sync.Mutex
	used    load
	callers []*caller // waiting, only with overflow: block
	closed  bool
}

// load is what a batch, or several, take of a room.
type load struct {
	size         int64 // in units of sizer
	bytes, spans int64
}

// caller waits for room.
type caller struct {
	load   load
	answer chan error // of capacity 1
}

func (c *QueueConfig) load(b *otlpdata.Batch) load {
	return c.loadOf(int64(b.Size()), int64(b.Len()))
}

// loadOf is the load of one batch.
func (c *QueueConfig) loadOf(bytes, spans int64) load {
	l := load{size: 1, bytes: bytes, spans: spans}
	switch c.Sizer {
	case sizerBytes:
		l.size = bytes
	case sizerItems:
		l.size = spans
	}
	return l
}

// enter takes room. Where there is none it waits, with overflow: block until ctx ends; has evict give some back, with drop_oldest, as long as it
// can; or returns an [Overloaded] error. What is larger than the room itself is refused for good. After close it returns [ErrStopping].
func (r *room) enter(ctx context.Context, l load, evict func() bool) error {
	if r.config.QueueSize > 0 && l.size > r.config.QueueSize || l.bytes > int64(r.config.MaxBytes) {
		return Permanent(fmt.Errorf("%w: the request is larger than sending_queue", errQueueFull))
	}
	for {
		c, err := r.tryEnter(l)
		switch {
		case c != nil:
			return r.wait(ctx, c)
		case err == nil || r.config.Overflow != overflowDrop || !errors.Is(err, errQueueFull) || !evict():
			return err
		}
	}
}

// tryEnter takes room, or returns why not, or the caller that waits from now on.
func (r *room) tryEnter(l load) (*caller, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return nil, ErrStopping
	case len(r.callers) == 0 && r.fits(l):
		r.add(l)
		return nil, nil
	case r.config.Overflow != overflowBlock:
		return nil, Overloaded(errQueueFull, 0)
	}
	c := &caller{load: l, answer: make(chan error, 1)}
	r.callers = append(r.callers, c)
	return c, nil
}

func (r *room) fits(l load) bool {
	return (r.config.QueueSize == 0 || l.size <= r.config.QueueSize-r.used.size) && l.bytes <= int64(r.config.MaxBytes)-r.used.bytes
}

// force takes room whether there is some or not: for what is there already.
func (r *room) force(l load) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(l)
}

func (r *room) add(l load) {
	r.used.size += l.size
	r.used.bytes += l.bytes
	r.used.spans += l.spans
}

func (r *room) wait(ctx context.Context, c *caller) error {
	select {
	case err := <-c.answer:
		return err
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.Index(r.callers, c)
	if i < 0 { // it got its answer at the same moment
		return <-c.answer
	}
	r.callers = slices.Delete(r.callers, i, i+1)
	r.admit() // those behind it may need less room
	return Overloaded(fmt.Errorf("%w, also after waiting", errQueueFull), 0)
}

// leave gives room back, and lets in those who wait, as far as they fit.
func (r *room) leave(l load) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(load{-l.size, -l.bytes, -l.spans})
	r.admit()
}

func (r *room) admit() {
	for len(r.callers) > 0 && r.fits(r.callers[0].load) {
		r.add(r.callers[0].load)
		r.callers[0].answer <- nil
		r.callers = slices.Delete(r.callers, 0, 1)
	}
}

// close lets nobody in any more.
func (r *room) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	for _, c := range r.callers {
		c.answer <- ErrStopping
	}
	r.callers = nil
}

func (r *room) load() load {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.used
}
