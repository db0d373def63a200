package tracestore

import (
	"context"
	"errors"
)

// Account reserves memory for one query in the budget of all queries (service.limits.query_memory).
// *pipeline.Reservation implements it. It is safe for concurrent use.
type Account interface {
	// Grow reserves n more bytes. If they exceed the budget, it reserves none and returns an error
	// that is an overload (see pipeline.Overloaded).
	Grow(n int64) error
	// Shrink gives n bytes back.
	Shrink(n int64)
}

type accountKey struct{}

// WithAccount returns the context of a query whose memory is charged to a. Components that query a
// store do this once for each query, when they admit it.
func WithAccount(ctx context.Context, a Account) context.Context {
	return context.WithValue(ctx, accountKey{}, a)
}

// memoryStep is the unit in which a Memory reserves bytes.
const memoryStep = 64 << 10

// Memory is the memory that one part of a query has reserved. Stores reserve memory before they use
// it, for everything that they keep for one query. Caches that outlive a query have fixed sizes of
// their own. A Memory is for one goroutine; a nil Memory has no limit.
type Memory struct {
	account Account // nil: no limit
	held    int64   // bytes that the owner has asked for
	taken   int64   // bytes that are reserved for it: held, rounded up
}

// Reserve reserves n bytes for the query of ctx. The caller must release the Memory. If the bytes
// exceed the budget of all queries, the error is an overload (see pipeline.Overloaded). Without an
// account in ctx there is no limit.
func Reserve(ctx context.Context, n int64) (*Memory, error) {
	a, _ := ctx.Value(accountKey{}).(Account)
	m := &Memory{account: a}
	return m, m.Grow(n)
}

// Grow reserves n more bytes, or returns an error like Reserve and reserves none. A negative n
// releases bytes and never fails.
func (m *Memory) Grow(n int64) error {
	if m == nil {
		return nil
	}
	return m.Resize(m.held + n)
}

// Resize changes the reservation to n bytes, or returns an error like Reserve and leaves it
// unchanged. Shrinking never fails.
func (m *Memory) Resize(n int64) error {
	if m == nil {
		return nil
	}
	n = max(n, 0)
	taken := (n + memoryStep - 1) / memoryStep * memoryStep
	switch more := taken - m.taken; {
	case m.account == nil || more == 0:
	case more < 0:
		m.account.Shrink(-more)
	default:
		if err := m.account.Grow(more); err != nil {
			return &memoryError{err}
		}
	}
	m.held, m.taken = n, taken
	return nil
}

// Held returns the number of reserved bytes.
func (m *Memory) Held() int64 {
	if m == nil {
		return 0
	}
	return m.held
}

// Release releases all bytes. It may be called more than once.
func (m *Memory) Release() {
	_ = m.Resize(0) // cannot fail
}

// memoryError is an error of Memory.
type memoryError struct{ err error }

func (e *memoryError) Error() string { return e.err.Error() }
func (e *memoryError) Unwrap() error { return e.err }

// IsOutOfMemory reports whether err is an error of a Memory.
func IsOutOfMemory(err error) bool {
	var e *memoryError
	return errors.As(err, &e)
}
