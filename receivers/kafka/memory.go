package kafka

import (
	"context"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// memory charges records and batches to the budget of the process. It is bounded for these reasons:
//
//   - The client library holds at most max_concurrent_fetches responses of max_fetch_size. It
//     fetches no more until they are polled.
//   - Polled records are charged to the budget. If it is exhausted, the rest is a debt, and nothing
//     is polled until the debt is paid, so it is at most one poll. See receiver.MaxMemory. Nothing
//     is polled either while the budget has no space for a usual poll.
//   - A batch is decoded when the memory of its translation is reserved. If the budget is
//     exhausted, this is retried, except that one batch of the receiver may always be decoded.
//     Otherwise records in queues could take the whole budget, and none could ever leave it.
type memory struct {
	reservation *pipeline.Reservation
	budget      *pipeline.Budget
	maxQueued   int64
	usualPoll   int64 // bytes

	mu      sync.Mutex
	queued  int64 // bytes of polled and unfinished records, except in paused partitions
	debt    int64 // bytes in use that did not fit into the budget
	claims  int   // number of batches that are decoded or in the pipeline
	full    bool  // whether polling waits
	changed chan struct{}
}

func newMemory(b *pipeline.Budget, maxQueued, usualPoll int64) *memory {
	r, err := b.Reserve(0)
	if err != nil {
		panic("kafka: reserving 0 bytes failed: " + err.Error()) // cannot happen: 0 bytes always fit
	}
	return &memory{reservation: r, budget: b, maxQueued: maxQueued, usualPoll: usualPoll, changed: make(chan struct{}, 1)}
}

// addBytes charges n bytes of polled records.
func (m *memory) addBytes(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queued += n
	m.force(n)
}

// remove returns n bytes of records.
func (m *memory) remove(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queued -= n
	m.pay(n)
}

// setAside changes by n the number of bytes that do not count as queued because their partition is
// paused. They must not prevent polling of other partitions.
func (m *memory) setAside(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queued -= n
	m.signal()
}

func (m *memory) force(n int64) {
	if m.reservation.Grow(n) != nil {
		m.debt += n
	}
}

func (m *memory) pay(n int64) {
	paid := min(m.debt, n)
	m.debt -= paid
	m.reservation.Shrink(n - paid)
	m.signal()
}

func (m *memory) signal() {
	select {
	case m.changed <- struct{}{}:
	default:
	}
}

// wait waits until more records may be polled. It returns false if ctx has ended.
func (m *memory) wait(ctx context.Context) bool {
	// The budget does not notify when others release memory.
	const interval = 50 * time.Millisecond
	for !m.free() {
		select {
		case <-ctx.Done():
			return false
		case <-m.changed:
		case <-time.After(interval):
		}
	}
	return ctx.Err() == nil
}

func (m *memory) free() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.debt > 0 && m.reservation.Grow(m.debt) == nil {
		m.debt = 0
	}
	m.full = m.debt > 0 || m.queued >= m.maxQueued || !m.fits()
	return !m.full
}

// fits reports whether the budget has space for a usual poll.
func (m *memory) fits() bool {
	const part = 8 // of a small budget
	n := m.usualPoll
	if limit := m.budget.Limit(); limit > 0 {
		n = min(n, limit/part+1)
	}
	if m.reservation.Grow(n) != nil {
		return false
	}
	m.reservation.Shrink(n)
	return true
}

// isFull reports whether polling waits.
func (m *memory) isFull() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.full
}

// claim is the memory of one batch, in addition to its records.
type claim struct {
	memory *memory
	bytes  int64
}

// claim reserves n bytes for a batch.
func (m *memory) claim(n int64) (*claim, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.reserve(n, m.claims == 0); err != nil {
		return nil, err
	}
	m.claims++
	return &claim{m, n}, nil
}

// reserve reserves n bytes; alone says that no other batch has a claim.
func (m *memory) reserve(n int64, alone bool) error {
	if limit := m.budget.Limit(); limit > 0 && n > limit {
		return &otlpdata.LimitError{Limit: "bytes of memory for the records", Max: int(limit), TooLarge: true}
	}
	err := m.reservation.Grow(n)
	if err != nil && alone {
		m.debt += n
		return nil
	}
	return err
}

// resize changes the claim to n bytes.
func (c *claim) resize(n int64) error {
	c.memory.mu.Lock()
	defer c.memory.mu.Unlock()
	if n < c.bytes {
		c.memory.pay(c.bytes - n)
	} else if err := c.memory.reserve(n-c.bytes, c.memory.claims == 1); err != nil {
		return err
	}
	c.bytes = n
	return nil
}

func (c *claim) release() {
	c.memory.mu.Lock()
	defer c.memory.mu.Unlock()
	c.memory.claims--
	c.memory.pay(c.bytes)
	c.bytes = 0
}
