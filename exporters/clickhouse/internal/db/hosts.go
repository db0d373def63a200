package db

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// host is one server with its connections.
type host struct {
	address string
	conn    driver.Conn

	mu       sync.Mutex // guards the fields below
	failures int        // consecutive
	retry    time.Time  // when to retry the server after failures
}

// Delays after which a failed server is retried.
const (
	minRetryDelay = time.Second
	maxRetryDelay = 30 * time.Second
)

// failed records a failure.
func (h *host) failed(now time.Time) (first bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delay := min(minRetryDelay<<min(h.failures, 10), maxRetryDelay)
	h.failures++
	h.retry = now.Add(delay)
	return h.failures == 1
}

// worked records that the server answered.
func (h *host) worked() (recovered bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	recovered = h.failures > 0
	h.failures = 0
	return recovered
}

// downUntil returns when to retry the server, or the zero time if it works.
func (h *host) downUntil() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.failures == 0 {
		return time.Time{}
	}
	return h.retry
}

// hosts are all servers.
type hosts struct {
	list []*host
	next atomic.Uint32
	now  func() time.Time
}

// order returns the servers to try, in order: servers that work or have been down long enough,
// starting with a different one each time. If there are none, it returns the one whose retry is due
// first.
func (h *hosts) order() []*host {
	var up []*host
	var first *host
	now, n := h.now(), len(h.list)
	begin := int(h.next.Add(1)) % n
	for i := range n {
		one := h.list[(begin+i)%n]
		until := one.downUntil()
		if !until.After(now) {
			up = append(up, one)
		}
		if first == nil || until.Before(first.downUntil()) {
			first = one
		}
	}
	if len(up) == 0 {
		return []*host{first}
	}
	return up
}

// allDown reports whether the last statement on every server failed.
func (h *hosts) allDown() bool {
	return !slices.ContainsFunc(h.list, func(one *host) bool { return one.downUntil().IsZero() })
}

// try calls run with one server after the other until it succeeds or returns an error other than
// that the server is unreachable. again says for such an error whether to try another server.
func (d *DB) try(ctx context.Context, again func(error) bool, run func(*host) error) error {
	var err error
	for _, h := range d.hosts.order() {
		if err = run(h); err == nil || ClassOf(err) != Unreachable {
			d.worked(ctx, h)
			return err
		}
		if ctx.Err() != nil {
			return err
		}
		if CodeOf(err) != CodeShardMissing { // the server itself works
			d.failed(h, err)
		}
		if !again(err) {
			return err
		}
	}
	return err
}

// always lets another server run a statement that may have been executed by the first.
func always(error) bool { return true }

// ifNotSent lets another server run a statement only if the first has not received it.
func ifNotSent(err error) bool {
	d := (*dialError)(nil)
	return errors.As(err, &d)
}
