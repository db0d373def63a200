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
	// silentUntil is the deadline of the last request that the store did not answer in time, in
	// nanoseconds since 1970.
	silentUntil atomic.Int64
}

// call is the part of a request that one store answers.
type call struct {
	*member
	request context.Context
	ctx     context.Context // for the store; ends with request, or if the store does not answer in time
	cancel  context.CancelCauseFunc
}

// newCall returns a call. The caller must call release.
func (m *member) newCall(request context.Context) *call {
	c := &call{member: m, request: request}
	c.ctx, c.cancel = context.WithCancelCause(request)
	return c
}

func (c *call) release() { c.cancel(nil) }

// wait calls f, which waits for the store with c.ctx. The error is that of f, or errSilent if the
// store did not answer in time.
func (c *call) wait(f func() error) error {
	defer c.limitTime()()
	return c.failure(f())
}

// limitTime ends c.ctx, unless stop is called in time. The limit leaves a twentieth of the time
// until the deadline of the request for answering without the store. Until that deadline the store
// has only such a twentieth for other calls: a page may make several, one after the other. Each
// wait has a limit of its own, so that a store is not cut off because another one was silent.
//
// Searches that end by themselves shortly before their deadline do so earlier.
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

// errSilent is the error of a store that did not answer in time.
var errSilent error = silentError{}

type silentError struct{}

func (silentError) Error() string { return "did not answer in time" }
func (silentError) Unwrap() error { return context.DeadlineExceeded }

// isDamaged reports whether an error comes with an answer.
func isDamaged(err error) bool {
	var damaged *tracestore.DamagedError
	return errors.As(err, &damaged)
}
