package delivery

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/errclass"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// maxRequestedDelay is the maximum retry delay that a next hop can request. Longer delays are
// shortened, because one wrong response must not stop a sender for hours.
const maxRequestedDelay = 10 * time.Minute

// sender sends batches with retries: each attempt has a timeout, and the delays between attempts
// grow.
type sender struct {
	next    pipeline.Consumer
	config  atomic.Pointer[senderConfig]
	env     pipeline.Env
	retried func() // called for every attempt after the first

	stopping    <-chan struct{}               // no more attempts once closed; nil: never closed
	interrupted atomic.Pointer[chan struct{}] // closed and replaced to end retries of current batches
}

type senderConfig struct {
	timeout time.Duration
	retry   pipeline.RetryConfig
}

func newSender(next pipeline.Consumer, env pipeline.Env, retried func()) *sender {
	s := &sender{next: next, env: env, retried: retried}
	interrupted := make(chan struct{})
	s.interrupted.Store(&interrupted)
	return s
}

// configure sets the configuration for batches that are sent from now on.
func (s *sender) configure(d *pipeline.Delivery) {
	s.config.Store(&senderConfig{d.Timeout.Std(), d.Retry})
}

// interrupt ends the retries of all current batches: their callers get the error of the last
// attempt.
func (s *sender) interrupt() {
	next := make(chan struct{})
	close(*s.interrupted.Swap(&next))
}

// Consume sends b and returns the error of the last attempt. It gives up if the error is permanent,
// if max_elapsed_time or the deadline of ctx would pass before the next attempt, if ctx ends, or if
// the sender is stopped.
func (s *sender) Consume(ctx context.Context, b *otlpdata.Batch) error {
	var p pipeline.Progress
	err := s.attempts(pipeline.WithProgress(ctx, &p), b)
	if err == nil || p.Taken == 0 || !retryable(err) {
		return err
	}
	return &unfinished{p.Taken, err}
}

func (s *sender) attempts(ctx context.Context, b *otlpdata.Batch) error {
	start, c, interrupted := s.env.Now(), s.config.Load(), *s.interrupted.Load()
	delay := c.retry.InitialInterval.Std()
	for {
		err := s.attempt(ctx, b, c.timeout)
		if err == nil || !c.retry.Enabled || !retryable(err) || ctx.Err() != nil {
			return err
		}
		pause := max(s.jitter(delay, c.retry.RandomizationFactor), min(errclass.Of(err).Requested, maxRequestedDelay))
		if limit := c.retry.MaxElapsedTime.Std(); limit > 0 && pause > limit-s.env.Now().Sub(start) {
			return fmt.Errorf("gave up after %s: %w", limit, err)
		}
		if deadline, ok := ctx.Deadline(); ok && pause >= time.Until(deadline) {
			return err // the caller can retry later; waiting longer does not help it
		}
		if !s.sleep(ctx, pause, interrupted) {
			return err
		}
		s.retried()
		delay = min(scale(delay, c.retry.Multiplier), c.retry.MaxInterval.Std())
	}
}

func (s *sender) attempt(ctx context.Context, b *otlpdata.Batch, timeout time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no response within timeout (%s): %w", timeout, context.DeadlineExceeded))
	defer cancel()
	err := s.next.Consume(ctx, b)
	if err != nil && ctx.Err() != nil && errclass.Of(err).Code == codes.DeadlineExceeded {
		return context.Cause(ctx)
	}
	return err
}

// unfinished is the error of a batch that was given up after the next hop had accepted some of its
// spans, although a retry might have succeeded. Like every error that is not a Partial, it tells
// callers that no span was accepted.
type unfinished struct {
	accepted int // number of spans
	err      error
}

func (e *unfinished) Error() string { return e.err.Error() }
func (e *unfinished) Unwrap() error { return e.err }

// retryable reports whether a retry may succeed. A partial success is not retried: the rejected
// spans stay rejected.
func retryable(err error) bool {
	var partial *pipeline.Partial
	return !errors.As(err, &partial) && !pipeline.IsPermanent(err)
}

// jitter randomizes a delay, so that senders that failed together do not retry together.
func (s *sender) jitter(delay time.Duration, factor float64) time.Duration {
	const steps = 1 << 20
	return scale(delay, 1+factor*(2*float64(s.env.Rand()%steps)/steps-1))
}

// scale returns d times f, at most the maximum duration: an overflow would make the delay negative.
func scale(d time.Duration, f float64) time.Duration {
	if product := float64(d) * f; product < math.MaxInt64 {
		return time.Duration(product)
	}
	return math.MaxInt64
}

// sleep waits for d and reports whether it was not interrupted.
func (s *sender) sleep(ctx context.Context, d time.Duration, interrupted <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-s.stopping:
	case <-interrupted:
	}
	return false
}
