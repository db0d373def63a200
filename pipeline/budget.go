package pipeline

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Budget limits memory in the whole process. There are three budgets: for requests in flight
// (service.limits.inflight), for queries (service.limits.query_memory) and for spans that
// processors hold (service.limits.held). Receivers reserve bytes before they read a request into
// memory, grow the reservation while they decompress it, and release it when the request is
// answered. Queries reserve bytes when they are admitted, and more before they use more (see
// tracestore.Reserve). Reservations never wait: a reservation that exceeds the limit is refused as
// overloaded. A Budget is safe for concurrent use.
type Budget struct {
	key      string // of the limit
	exceeded error
	limit    atomic.Int64
	used     atomic.Int64
	peak     atomic.Int64
}

// NewBudget returns a budget of limit bytes for requests in flight. A limit of 0 or less means no
// limit, for tests.
func NewBudget(limit int64) *Budget {
	return newBudget("service.limits.inflight", ErrOverBudget, limit)
}

// NewQueryBudget returns a budget of limit bytes for queries. A limit of 0 or less means no limit,
// for tests.
func NewQueryBudget(limit int64) *Budget {
	return newBudget("service.limits.query_memory", ErrQueryMemory, limit)
}

// NewHeldBudget returns a budget of limit bytes for spans that processors hold. A limit of 0 or
// less means no limit, for tests.
func NewHeldBudget(limit int64) *Budget {
	return newBudget("service.limits.held", ErrHeldMemory, limit)
}

func newBudget(key string, exceeded error, limit int64) *Budget {
	b := &Budget{key: key, exceeded: exceeded}
	b.limit.Store(limit)
	return b
}

// Reserve reserves n bytes; a negative n counts as 0. If they exceed the limit, it returns an
// [Overloaded] error that wraps [ErrOverBudget] or [ErrQueryMemory].
func (b *Budget) Reserve(n int64) (*Reservation, error) { return b.ReserveLeaving(n, 0) }

// ReserveLeaving is like Reserve but leaves the given number of bytes to others: the reservation is
// refused, and cannot grow, if fewer bytes would remain free.
func (b *Budget) ReserveLeaving(n, free int64) (*Reservation, error) {
	r := &Reservation{budget: b, leaves: max(free, 0)}
	if err := r.Grow(n); err != nil {
		return nil, err
	}
	return r, nil
}

// Used returns the number of reserved bytes.
func (b *Budget) Used() int64 { return b.used.Load() }

// Peak returns the maximum number of bytes reserved at the same time so far.
func (b *Budget) Peak() int64 { return b.peak.Load() }

// Limit returns the limit in bytes.
func (b *Budget) Limit() int64 { return b.limit.Load() }

// SetLimit changes the limit. If more is reserved already, further reservations fail until enough
// is released.
func (b *Budget) SetLimit(limit int64) { b.limit.Store(limit) }

// take reserves n > 0 bytes if at least the given number stays free. It never counts bytes that do
// not fit, not even briefly, because that would make other requests fail.
func (b *Budget) take(n, leaves int64) error {
	configured := b.limit.Load()
	limit := configured
	if limit <= 0 {
		limit, leaves = math.MaxInt64, 0
	}
	for {
		used := b.used.Load()
		if n > limit-leaves-used {
			if n <= limit-used {
				return Overloaded(fmt.Errorf("%w: %s is %d bytes, of which %d are kept for others", b.exceeded, b.key, configured, leaves),
					time.Second)
			}
			return Overloaded(fmt.Errorf("%w: %s is %d bytes", b.exceeded, b.key, configured), time.Second)
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

// Reservation is a number of reserved bytes of a [Budget]. It is safe for concurrent use. It cannot
// grow after Release.
type Reservation struct {
	budget *Budget
	leaves int64 // bytes of the limit that it does not use

	mu   sync.Mutex
	held int64
	done bool
}

// Grow reserves n more bytes, or returns an error like Reserve and reserves none.
func (r *Reservation) Grow(n int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.grow(n)
}

// Resize changes the reservation to n bytes, or returns an error like Reserve and leaves it
// unchanged. Shrinking never fails.
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
	if err := r.budget.take(n, r.leaves); err != nil {
		return err
	}
	r.held += n
	return nil
}

// Shrink returns n bytes to the budget, but at most the reserved ones.
func (r *Reservation) Shrink(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n = max(min(n, r.held), 0)
	r.budget.used.Add(-n)
	r.held -= n
}

// Held returns the number of reserved bytes.
func (r *Reservation) Held() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held
}

// Release returns all bytes to the budget. It may be called more than once.
func (r *Reservation) Release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.budget.used.Add(-r.held)
	r.held, r.done = 0, true
}
