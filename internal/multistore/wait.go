package multistore

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// member is one of the stores.
type member struct {
	Named
	// silentUntil is the deadline of the last request to which the store did not respond in time,
	// in nanoseconds since 1970.
	silentUntil atomic.Int64
}

// call is the part of a request for one store.
type call struct {
	*member
	request context.Context
	ctx     context.Context // for the store; ends with request, or if the store does not respond in time
	cancel  context.CancelCauseFunc
}

// newCall returns a call. The caller must call release.
func (m *member) newCall(request context.Context) *call {
	c := &call{member: m, request: request}
	c.ctx, c.cancel = context.WithCancelCause(request)
	return c
}

func (c *call) release() { c.cancel(nil) }

// wait calls f, which waits for the store with c.ctx. The error is the error of f, or errSilent if
// the store did not respond in time.
func (c *call) wait(f func() error) error {
	defer c.limitTime()()
	return c.failure(f())
}

// limitTime ends c.ctx, unless stop is called in time. The limit leaves a twentieth of the time
// until the deadline of the request for a response without the store. After that, the store has
// only a twentieth for other calls until the deadline: a page may make several calls in sequence.
// Each wait has its own limit, so that a store is not cut off because another one did not respond.
//
// Searches that end shortly before their deadline end earlier than this limit.
func (c *call) limitTime() (stop func()) {
	end, ok := c.request.Deadline()
	if !ok {
		return func() {}
	}
	left := time.Until(end)
	limit := left - left/20
	if time.Now().UnixNano() < c.silentUntil.Load() {
		limit = left / 20
	}
	timer := time.AfterFunc(limit, func() {
		c.silentUntil.Store(end.UnixNano())
		c.cancel(errSilent)
	})
	return func() { timer.Stop() }
}

// failure returns the error of a store that returned err.
func (c *call) failure(err error) error {
	if err != nil && !isDamaged(err) && errors.Is(context.Cause(c.ctx), errSilent) {
		return errSilent
	}
	return err
}

// errSilent is the error for a store that did not respond in time.
var errSilent error = silentError{}

type silentError struct{}

func (silentError) Error() string { return "did not respond in time" }
func (silentError) Unwrap() error { return context.DeadlineExceeded }

// isDamaged reports whether an error comes with a result.
func isDamaged(err error) bool {
	var damaged *tracestore.DamagedError
	return errors.As(err, &damaged)
}
