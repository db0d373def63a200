package pipeline

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Budget bounds the bytes that the process holds of requests in flight (service.limits.inflight). Receivers reserve before they read a
// request into memory, grow the reservation while they inflate it, and release it when the answer is known. Nothing waits: over the
// limit a request is refused as overloaded.
type Budget struct {
	limit int64
	used  atomic.Int64
	peak  atomic.Int64
}

// NewBudget returns a budget of limit bytes; zero or less means no limit, which is for tests.
func NewBudget(limit int64) *Budget { return &Budget{limit: limit} }

// Reserve takes n bytes; below zero counts as zero. The error is an [Overloaded] that wraps [ErrOverBudget].
func (b *Budget) Reserve(n int64) (*Reservation, error) {
	r := &Reservation{budget: b}
	if err := r.Grow(n); err != nil {
		return nil, err
	}
	return r, nil
}

// Used returns the bytes reserved now.
func (b *Budget) Used() int64 { return b.used.Load() }

// Peak returns the most bytes that were ever reserved at once.
func (b *Budget) Peak() int64 { return b.peak.Load() }

// Limit returns the limit in bytes.
func (b *Budget) Limit() int64 { return b.limit }

// take adds n > 0 bytes if they fit. A request that does not fit is never counted, not even for a moment: it must not make others fail.
func (b *Budget) take(n int64) error {
	limit := b.limit
	if limit <= 0 {
		limit = math.MaxInt64
	}
	for {
		used := b.used.Load()
		if n > limit-used {
			return Overloaded(fmt.Errorf("%w: service.limits.inflight is %d bytes", ErrOverBudget, b.limit), time.Second)
		}
		if b.used.CompareAndSwap(used, used+n) {
			b.notePeak(used + n)
			return nil
		}
	}
}

func (b *Budget) notePeak(used int64) {
	for {
		peak := b.peak.Load()
		if used <= peak || b.peak.CompareAndSwap(peak, used) {
			return
		}
	}
}

// Reservation is a share of a Budget. It is safe for concurrent use; after Release it takes nothing any more.
type Reservation struct {
	budget *Budget

	mu   sync.Mutex
	held int64
	done bool
}

// Grow takes n more bytes, or none with an error as in Reserve.
func (r *Reservation) Grow(n int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.grow(n)
}

// Resize makes the reservation n bytes, whatever it was, or leaves it with an error as in Reserve. Less never fails.
func (r *Reservation) Resize(n int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	n = max(n, 0)
	if n < r.held {
		r.budget.used.Add(n - r.held)
		r.held = n
		return nil
	}
	return r.grow(n - r.held)
}

func (r *Reservation) grow(n int64) error {
	if n <= 0 || r.done {
		return nil
	}
	if err := r.budget.take(n); err != nil {
		return err
	}
	r.held += n
	return nil
}

// Release gives everything back. It may be called more than once.
func (r *Reservation) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.budget.used.Add(-r.held)
	r.held, r.done = 0, true
}
