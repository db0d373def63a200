package otelcol

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
)

// panicError is the error of Collector code that has panicked.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("BUG: component panicked: %v", e.value) }

// safely calls Collector code and turns a panic into an error. Every goroutine that runs such code
// needs it, because a panic there would end the process.
func safely(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{p, debug.Stack()}
		}
	}()
	return f()
}

// shutdown stops a component. It logs a panic.
func shutdown(ctx context.Context, c component.Component, log *zap.Logger) error {
	err := safely(func() error { return c.Shutdown(ctx) })
	var p *panicError
	if errors.As(err, &p) {
		log.Error("BUG: component panicked", zap.String("method", "Shutdown"), zap.Any("panic", p.value), zap.ByteString("stack", p.stack))
	}
	return err
}

// maxLeftCalls is the maximum number of abandoned calls of a component. Further calls are refused
// until some have returned, so that a component that hangs does not fill the memory.
const maxLeftCalls = 64

var (
	errIgnoresEnd = errors.New("component has not returned")
	errHangs      = fmt.Errorf("component hangs: %d calls have not returned in time", maxLeftCalls)
)

// calls calls a component that may ignore the end of its context.
type calls struct {
	budget *pipeline.Budget
	left   atomic.Int64 // abandoned calls that have not returned
}

// call calls f for a batch of size bytes, and returns its error or panics like it. If ctx ends
// first, call abandons f and returns the cause. Until f returns, its bytes stay reserved if they
// fit in the budget. call refuses to call f while there are too many abandoned calls.
func (c *calls) call(ctx context.Context, size int64, f func() error) error {
	if ctx.Done() == nil {
		return f()
	}
	if c.left.Load() >= maxLeftCalls {
		return pipeline.Unavailable(errHangs, 0)
	}
	done := make(chan error, 1)
	go func() { done <- safely(f) }()
	select {
	case err := <-done:
		return rethrow(err)
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return rethrow(err)
	default:
	}
	c.left.Add(1)
	reserved, err := c.budget.Reserve(size)
	go func() {
		<-done
		c.left.Add(-1)
		if err == nil {
			reserved.Release()
		}
	}()
	return fmt.Errorf("%w: %w", errIgnoresEnd, context.Cause(ctx))
}

// rethrow panics again with the error of a panic. The caller of the component handles and logs it.
func rethrow(err error) error {
	if p, ok := err.(*panicError); ok {
		panic(fmt.Sprintf("%v\n%s", p.value, p.stack))
	}
	return err
}
