package pipeline

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Delivery are the keys that the framework acts on for every exporter that sends over a network. The exporter's config embeds it; its
// Consume then makes one attempt and nothing more. The keys are those of the OpenTelemetry Collector where it has them.
type Delivery struct {
	Timeout Duration              `yaml:"timeout" doc:"How long one attempt may take."`
	Retry   RetryConfig           `yaml:"retry_on_failure" doc:"How sends that failed for the moment are tried again."`
	Queue   Optional[QueueConfig] `yaml:"sending_queue" doc:"Takes spans at once and sends them later; without it, an answer to the client waits for the answer of the next hop."`
}

// RetryConfig are the keys below retry_on_failure.
type RetryConfig struct {
	Enabled             bool     `yaml:"enabled" doc:"Whether to try again at all."`
	InitialInterval     Duration `yaml:"initial_interval" doc:"Wait before the second attempt."`
	RandomizationFactor float64  `yaml:"randomization_factor" doc:"Share by which each wait is made longer or shorter at random."`
	Multiplier          float64  `yaml:"multiplier" doc:"How much longer each wait is than the one before."`
	MaxInterval         Duration `yaml:"max_interval" doc:"Longest wait, unless the next hop asks for a longer one."`
	MaxElapsedTime      Duration `yaml:"max_elapsed_time" doc:"How long to go on trying; 0 is without end."`
}

// DefaultDelivery returns what holds where a file says nothing: attempts of 5 s, retries for 5 minutes, and no queue, so that an
// acknowledgement means that the next hop has the spans.
func DefaultDelivery() Delivery {
	return Delivery{
		Timeout: Duration(5 * time.Second),
		Retry: RetryConfig{Enabled: true, InitialInterval: Duration(5 * time.Second), RandomizationFactor: 0.5, Multiplier: 1.5,
			MaxInterval: Duration(30 * time.Second), MaxElapsedTime: Duration(5 * time.Minute)},
		Queue: Absent(DefaultQueue()),
	}
}

// Validate checks the timeout.
func (d *Delivery) Validate() error {
	if d.Timeout <= 0 {
		return BadKey("timeout", "must be above 0, or a next hop that hangs would be waited for without end")
	}
	return nil
}

// Validate checks that the waits grow.
func (c *RetryConfig) Validate() error {
	var errs []error
	if c.InitialInterval <= 0 {
		errs = append(errs, BadKey("initial_interval", "must be above 0"))
	}
	if c.MaxInterval < c.InitialInterval {
		errs = append(errs, BadKey("max_interval", "must be at least initial_interval (%s), not %s", c.InitialInterval, c.MaxInterval))
	}
	if !(c.RandomizationFactor >= 0 && c.RandomizationFactor <= 1) {
		errs = append(errs, BadKey("randomization_factor", "must be from 0 to 1"))
	}
	if !(c.Multiplier >= 1) {
		errs = append(errs, BadKey("multiplier", "must be at least 1"))
	}
	return errors.Join(errs...)
}

// deliverable is a config that embeds Delivery.
type deliverable interface{ delivery() *Delivery }

func (d *Delivery) delivery() *Delivery { return d }

// maxAsked is the longest wait that a next hop can ask for; a longer one is cut, or one wrong answer would stop a sender for good.
const maxAsked = 10 * time.Minute

// sender makes the attempts of one batch: each within the timeout, with growing waits between them.
type sender struct {
	next    Consumer
	config  atomic.Pointer[sending]
	env     Env
	retried func() // told of every attempt after the first

	stopping <-chan struct{}               // closed: no more attempts; nil: never
	hurry    atomic.Pointer[chan struct{}] // closed and exchanged: no more attempts of batches that are being sent now
}

// sending is what a configuration says about attempts.
type sending struct {
	timeout time.Duration
	retry   RetryConfig
}

func newSender(next Consumer, env Env, retried func()) *sender {
	s := &sender{next: next, env: env, retried: retried}
	hurry := make(chan struct{})
	s.hurry.Store(&hurry)
	return s
}

// set changes what holds for the attempts of batches that come from now on.
func (s *sender) set(d *Delivery) {
	s.config.Store(&sending{d.Timeout.Std(), d.Retry})
}

// interrupt ends the pauses between attempts: callers get the error of their last one.
func (s *sender) interrupt() {
	next := make(chan struct{})
	close(*s.hurry.Swap(&next))
}

// Consume returns the outcome of the last attempt. It ends early when the error is permanent, when max_elapsed_time would be over before
// the next attempt, and when ctx ends or the sender is stopped; the error is then that of the last attempt.
func (s *sender) Consume(ctx context.Context, b *otlpdata.Batch) error {
	var p Progress
	return p.outcome(s.attempts(p.in(ctx), b))
}

func (s *sender) attempts(ctx context.Context, b *otlpdata.Batch) error {
	start, c, hurry := s.env.Now(), s.config.Load(), *s.hurry.Load()
	wait := c.retry.InitialInterval.Std()
	for {
		err := s.attempt(ctx, b, c.timeout)
		if err == nil || !c.retry.Enabled || !retryable(err) || ctx.Err() != nil {
			return err
		}
		pause := max(s.jitter(wait, c.retry.RandomizationFactor), min(classify(err).asked, maxAsked))
		if most := c.retry.MaxElapsedTime.Std(); most > 0 && pause > most-s.env.Now().Sub(start) {
			return fmt.Errorf("gave up after %s: %w", most, err)
		}
		if !s.sleep(ctx, pause, hurry) {
			return err
		}
		s.retried()
		wait = min(scale(wait, c.retry.Multiplier), c.retry.MaxInterval.Std())
	}
}

func (s *sender) attempt(ctx context.Context, b *otlpdata.Batch, timeout time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within timeout (%s): %w", timeout, context.DeadlineExceeded))
	defer cancel()
	err := s.next.Consume(ctx, b)
	if err != nil && errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// retryable reports whether another attempt makes sense. A partial success is an answer: what was rejected stays rejected.
func retryable(err error) bool {
	var partial *Partial
	return !errors.As(err, &partial) && !IsPermanent(err)
}

// jitter spreads waits, so that senders that failed together do not come back together.
func (s *sender) jitter(wait time.Duration, factor float64) time.Duration {
	const steps = 1 << 20
	share := 1 + factor*(2*float64(s.env.Rand()%steps)/steps-1)
	return scale(wait, share)
}

// scale returns d times f, or the longest duration there is: a product beyond it must not turn into a negative wait, which is none.
func scale(d time.Duration, f float64) time.Duration {
	if product := float64(d) * f; product < math.MaxInt64 {
		return time.Duration(product)
	}
	return math.MaxInt64
}

func (s *sender) sleep(ctx context.Context, d time.Duration, hurry <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
	case <-s.stopping:
	case <-hurry:
	}
	return false
}
