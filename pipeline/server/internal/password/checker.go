package password

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/crypto/bcrypt"
)

// Errors of Check.
var (
	ErrWrong    = errors.New("wrong user or password")
	ErrStopping = errors.New("server is stopping")
)

// DelayedError is the error of a check that was refused without a comparison. The request may be
// retried after the delay.
type DelayedError struct {
	Failures bool // the client has sent too many wrong passwords; false: too many checks wait
	After    time.Duration
}

// Error returns a text for the client.
func (e *DelayedError) Error() string {
	if e.Failures {
		return "too many wrong passwords from this address; wait before the next attempt"
	}
	return "too many passwords to check; retry later"
}

// busyDelay is the delay of requests that are refused because too many comparisons wait.
const busyDelay = time.Second

type outcome int

const (
	canceled outcome = iota
	match
	mismatch
)

// Checker compares passwords within the limits of its Config. It is safe for concurrent use.
type Checker struct {
	config  Config
	now     func() time.Time
	compare func(hash, password []byte) error // bcrypt, replaced in tests
	results *prometheus.CounterVec
	slots   chan struct{} // holds an item for each running comparison
	stopped chan struct{}
	stop    sync.Once

	mu      sync.Mutex
	checks  map[checkKey]*check // running or waiting
	clients *clients
}

// checkKey identifies a check. Concurrent requests of a client with equal credentials share one.
type checkKey struct {
	users        *Users
	client, name string
	password     digest
}

// check is a comparison that runs or waits, in its own goroutine.
type check struct {
	done     chan struct{} // closed when outcome is set
	outcome  outcome
	requests int // that wait for the outcome
	cancel   context.CancelFunc
}

// New returns a checker and registers its metrics.
func New(cfg Config, now func() time.Time, reg prometheus.Registerer) (*Checker, error) {
	c := &Checker{config: cfg, now: now, compare: bcrypt.CompareHashAndPassword,
		slots: make(chan struct{}, cfg.MaxConcurrent), stopped: make(chan struct{}), checks: map[checkKey]*check{}}
	c.clients = newClients(&c.config)
	return c, c.register(reg)
}

// Stop ends all calls of Check. It does not wait for running comparisons.
func (c *Checker) Stop() { c.stop.Do(func() { close(c.stopped) }) }

// Check compares the password of a user for a client, see Client in package server. It is for
// passwords that are not [Users.Proven]. It returns nil if the password is correct, ErrWrong, a
// [*DelayedError], ErrStopping, or the error of ctx. It returns early if ctx ends.
func (c *Checker) Check(ctx context.Context, users *Users, client, name string, password []byte) error {
	key := checkKey{users, client, name, sha256.Sum256(password)}
	k, err := c.join(key, password)
	if err != nil {
		return err
	}
	defer c.leave(k)
	select {
	case <-k.done:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.stopped:
		return ErrStopping
	}
	switch k.outcome {
	case match:
		return nil
	case mismatch:
		return ErrWrong
	}
	return &DelayedError{After: busyDelay} // waited for wait_timeout
}

// join returns the running check with the same key, or starts a new one within the limits.
func (c *Checker) join(key checkKey, password []byte) (*check, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k, ok := c.checks[key]; ok {
		k.requests++
		return k, nil
	}
	if len(c.checks) >= c.config.MaxWaiting {
		return nil, &DelayedError{After: busyDelay}
	}
	from, delay, busy := c.clients.beginAttempt(key.client, c.now())
	switch {
	case delay > 0:
		return nil, &DelayedError{Failures: true, After: delay}
	case busy:
		return nil, &DelayedError{After: busyDelay}
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.config.WaitTimeout.Std())
	k := &check{done: make(chan struct{}), requests: 1, cancel: cancel}
	c.checks[key] = k
	go c.run(ctx, key, k, from, password)
	return k, nil
}

// leave is called when a request no longer waits. A check for which no request waits is canceled
// unless it runs.
func (c *Checker) leave(k *check) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k.requests--; k.requests == 0 {
		k.cancel()
	}
}

// run waits for a slot and compares.
func (c *Checker) run(ctx context.Context, key checkKey, k *check, from *client, password []byte) {
	o := canceled
	select {
	case c.slots <- struct{}{}:
		if ctx.Err() == nil { // both may have been ready
			o = mismatch
			if key.users.match(key.name, password, c.compare) {
				o = match
			}
		}
		<-c.slots
	case <-ctx.Done():
	case <-c.stopped:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k.cancel()
	k.outcome = o
	c.clients.end(from, o, c.now())
	delete(c.checks, key)
	c.results.WithLabelValues(o.String()).Inc()
	close(k.done)
}
