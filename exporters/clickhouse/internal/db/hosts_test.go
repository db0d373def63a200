package db

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"
)

// three returns a DB with three servers and a clock.
func three(now *time.Time) *DB {
	d := &DB{log: zap.NewNop(), down: make(chan struct{}, 1)}
	d.hosts.now = func() time.Time { return *now }
	for _, address := range []string{"a", "b", "c"} {
		d.hosts.list = append(d.hosts.list, &host{address: address})
	}
	return d
}

// tried calls try and returns the servers in the order in which they were tried. Those in down
// cannot be reached.
func tried(d *DB, down ...string) (order []string, err error) {
	err = d.try(context.Background(), always, func(h *host) error {
		order = append(order, h.address)
		if slices.Contains(down, h.address) {
			return &Error{Class: Unreachable, Err: errors.New("refused")}
		}
		return nil
	})
	return order, err
}

func TestFailover(t *testing.T) {
	now := time.Unix(1000, 0)
	d := three(&now)
	for range 3 {
		if _, err := tried(d, "a"); err != nil {
			t.Fatal(err)
		}
	}
	for range 6 {
		if order, err := tried(d, "a"); err != nil || len(order) != 1 || order[0] == "a" {
			t.Fatalf("tried %v, %v although a is down", order, err)
		}
	}
	now = now.Add(minRetryDelay)
	used := map[string]bool{}
	for range 6 {
		order, err := tried(d)
		if err != nil {
			t.Fatal(err)
		}
		used[order[0]] = true
	}
	if len(used) != 3 {
		t.Errorf("after the delay, used %v", used)
	}
}

func TestAllDown(t *testing.T) {
	now := time.Unix(1000, 0)
	d := three(&now)
	if order, err := tried(d, "a", "b", "c"); err == nil || len(order) != 3 {
		t.Fatalf("tried %v, %v", order, err)
	}
	if order, err := tried(d, "a", "b", "c"); err == nil || len(order) != 1 {
		t.Errorf("all down: tried %v, %v", order, err)
	}
	if order, err := tried(d); err != nil || len(order) != 1 {
		t.Errorf("recovered: tried %v, %v", order, err)
	}
}

func TestDelayGrows(t *testing.T) {
	now := time.Unix(1000, 0)
	h := &host{}
	var delays []time.Duration
	for range 8 {
		h.failed(now)
		delays = append(delays, h.downUntil().Sub(now))
	}
	want := []time.Duration{1, 2, 4, 8, 16, 30, 30, 30}
	for i := range want {
		if delays[i] != want[i]*time.Second {
			t.Fatalf("delays are %v", delays)
		}
	}
}

// TestShardMissing checks that servers which cannot reach a shard are still used.
func TestShardMissing(t *testing.T) {
	now := time.Unix(1000, 0)
	d := three(&now)
	for range 3 {
		calls := 0
		err := d.try(context.Background(), always, func(*host) error {
			calls++
			return &Error{Class: Unreachable, Code: CodeShardMissing, Err: &clickhouse.Exception{Code: CodeShardMissing}}
		})
		if CodeOf(err) != CodeShardMissing || calls != 3 {
			t.Errorf("%d servers were tried, %v", calls, err)
		}
	}
}

// Errors other than a server that cannot be reached do not go to another server.
func TestNoFailover(t *testing.T) {
	now := time.Unix(1000, 0)
	d, calls := three(&now), 0
	for _, class := range []Class{Unknown, Overloaded, Limited, Misconfigured, BadData} {
		calls = 0
		err := d.try(context.Background(), always, func(*host) error {
			calls++
			return &Error{Class: class, Err: errors.New("reason")}
		})
		if ClassOf(err) != class || calls != 1 {
			t.Errorf("%s: %d calls, %v", class, calls, err)
		}
	}
	calls = 0
	if err := d.try(context.Background(), ifNotSent, func(*host) error {
		calls++
		return &Error{Class: Unreachable, Err: errors.New("connection reset")}
	}); err == nil || calls != 1 {
		t.Errorf("a statement that was sent went to %d servers", calls)
	}
}

func TestDown(t *testing.T) {
	now := time.Unix(1e9, 0)
	d := three(&now)
	if _, err := tried(d, "a", "b"); err != nil || len(d.Down()) != 0 {
		t.Errorf("two of three servers cannot be reached: %v, down: %d", err, len(d.Down()))
	}
	now = now.Add(time.Minute)
	for range 2 { // the second finds the channel full
		if _, err := tried(d, "a", "b", "c"); err == nil || len(d.Down()) != 1 {
			t.Errorf("no server can be reached: %v, down: %d", err, len(d.Down()))
		}
	}
}
