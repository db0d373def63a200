package password

import (
	"container/list"
	"time"
)

// forgetAfter is the time after which failures are forgotten, in multiples of max_delay.
const forgetAfter = 3

// clients counts the wrong passwords of each client address. The caller of its methods holds the
// mutex of the Checker.
type clients struct {
	config *Config
	byKey  map[string]*list.Element
	recent list.List // of *client, those begun last first
}

type client struct {
	key      string
	pending  int // comparisons that run or wait
	failures int
	failed   time.Time // last failure
	until    time.Time // the next comparison must not begin before
}

func newClients(cfg *Config) *clients {
	return &clients{config: cfg, byKey: map[string]*list.Element{}}
}

// beginAttempt counts a comparison of the client; the caller must call end after it. If the client
// must wait first, beginAttempt returns the delay instead; busy means that other comparisons of the
// client must end first.
func (cs *clients) beginAttempt(key string, now time.Time) (c *client, delay time.Duration, busy bool) {
	e, ok := cs.byKey[key]
	if !ok {
		c = &client{key: key, pending: 1}
		cs.byKey[key] = cs.recent.PushFront(c)
		if len(cs.byKey) > cs.config.MaxClients {
			cs.remove(cs.recent.Back())
		}
		return c, 0, false
	}
	c = e.Value.(*client)
	if now.Sub(c.failed) > forgetAfter*cs.config.MaxDelay.Std() {
		c.failures = 0
	}
	if delay = c.until.Sub(now); delay > 0 {
		return nil, delay, false
	}
	if limit := cs.limit(c); c.pending >= limit {
		return nil, 0, true
	}
	c.pending++
	cs.recent.MoveToFront(e)
	return c, 0, false
}

// limit returns how many comparisons of the client may run or wait: after allowed_failures, one at
// a time.
func (cs *clients) limit(c *client) int {
	if c.failures > cs.config.AllowedFailures && cs.config.MinDelay > 0 {
		return 1
	}
	return cs.config.MaxWaitingPerClient
}

// end counts the end of a comparison with its outcome.
func (cs *clients) end(c *client, o outcome, now time.Time) {
	c.pending--
	switch o {
	case mismatch:
		c.failures++
		c.failed = now
		c.until = now.Add(cs.delay(c.failures))
	case match:
		c.failures, c.until = 0, time.Time{}
	}
	if e := cs.byKey[c.key]; c.pending == 0 && c.failures == 0 && e != nil && e.Value == c {
		cs.remove(e)
	}
}

// delay returns the delay after the given number of failures.
func (cs *clients) delay(failures int) time.Duration {
	d := cs.config.MinDelay.Std()
	if failures <= cs.config.AllowedFailures || d == 0 {
		return 0
	}
	for range failures - cs.config.AllowedFailures - 1 {
		if d *= 2; d >= cs.config.MaxDelay.Std() {
			return cs.config.MaxDelay.Std()
		}
	}
	return d
}

func (cs *clients) remove(e *list.Element) {
	delete(cs.byKey, e.Value.(*client).key)
	cs.recent.Remove(e)
}
