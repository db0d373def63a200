package kafka

import (
	"context"
	"errors"
	"testing"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Records of all partitions arrive once, are committed, and are counted.
func TestConsume(t *testing.T) {
	c := newCluster(t, 3)
	all := names("span", 30)
	for i, name := range all {
		c.write(int32(i%3), name)
	}
	m := c.start(c.config(), c, 64<<20)
	c.awaitCommitted()
	c.expectOnce(all...)
	for metric, want := range map[string]float64{"records_total": 30, "partitions": 3, "rebalances_total": 1,
		"lag_records": 0, "lag_seconds": 0, "repeated_records_total": 0, "commit_failures_total": 0, "dead_letters_total": 0, "paused": 0} {
		if got := m.sample(metric); got != want {
			t.Errorf("%s: %v, want %v", metric, got, want)
		}
	}
	for _, metric := range []string{"bytes_total", "commits_total"} {
		await(t, metric, func() bool { return m.sample(metric) > 0 })
	}
	m.stop()
	if lines := m.Logs.FilterMessage("committed offset").All(); len(lines) == 0 || lines[0].ContextMap()["topic"] != topic {
		t.Errorf("commits are not logged: %v", lines)
	}
	if info := c.GroupInfo(group); info != nil && len(info.Members) > 0 {
		t.Errorf("group has members after Stop: %v", info.Members)
	}
}

// A new member goes on after the committed offset.
func TestRestart(t *testing.T) {
	c := newCluster(t, 1)
	c.write(0, "a")
	m := c.start(c.config(), c, 0)
	c.awaitCommitted()
	m.stop()
	c.write(0, "b")
	c.start(c.config(), c, 0)
	c.awaitCommitted()
	c.expectOnce("a", "b")
}

// Temporary errors are repeated until they end. Meanwhile nothing is committed, and the receiver is
// degraded. Other partitions go on, also if the records of the stalled one fill the queue.
func TestStall(t *testing.T) {
	c := newCluster(t, 2)
	failing := make(chan struct{})
	away := errors.New("store is away")
	next := &destination{c, func(_ context.Context, _ *otlpdata.Batch, names []string) error {
		select {
		case <-failing:
			return nil
		default:
		}
		if names[0] == "good" {
			return nil
		}
		return away
	}}
	c.write(0, "bad", "bad too")
	cfg := c.config()
	cfg.MaxQueuedSize = 500 // these two take more
	m := c.start(cfg, next, 64<<20)
	m.awaitReport("1 partitions wait until their records can be processed; partition 0: store is away")
	await(t, "pause", func() bool { return m.sample("paused") == 1 })
	c.write(1, "good")
	await(t, "commit of the other partition", func() bool { return c.committed(1) == 1 })
	if got := c.committed(0); got > 0 {
		t.Errorf("offset %d is committed", got)
	}
	await(t, "lag", func() bool { return m.sample("lag_records") == 2 && m.sample("lag_seconds") > 0 })
	close(failing)
	c.awaitCommitted()
	m.awaitReport("")
	if m.sample("paused") != 0 {
		t.Error("partition is still paused")
	}
	c.expectOnce("bad", "bad too", "good")
}
