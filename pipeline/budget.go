package pipeline

import (
	"fmt"
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

// Reserve takes n bytes. The error is an [Overloaded] that wraps [ErrOverBudget].
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

func (b *Budget) take(n int64) error {
	used := b.used.Add(n)
	if n > 0 && b.limit > 0 && used > b.limit {
		b.used.Add(-n)
		return Overloaded(fmt.Errorf("%w: service.limits.inflight is %d bytes", ErrOverBudget, b.limit), time.Second)
	}
	for {
		peak := b.peak.Load()
		if used <= peak || b.peak.CompareAndSwap(peak, used) {
			return nil
		}
	}
}

// Reservation is a share of a Budget. It is safe for concurrent use; after Release it takes nothing any more.
type Reservation struct {
	budget *Budget
	held   atomic.Int64
	done   atomic.Bool
}

// Grow takes n more bytes, or none with an error as in Reserve.
func (r *Reservation) Grow(n int64) error {
	if err := r.budget.take(n); err != nil {
		return err
	}
	r.held.Add(n)
	if r.done.Load() {
		r.give()
	}
	return nil
}

// Resize makes the reservation n bytes, whatever it was.
func (r *Reservation) Resize(n int64) error {
	return r.Grow(n - r.held.Load())
}

// Release gives everything back. It may be called more than once.
func (r *Reservation) Release() {
	r.done.Store(true)
	r.give()
}

func (r *Reservation) give() { r.budget.used.Add(-r.held.Swap(0)) }
