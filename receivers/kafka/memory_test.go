package kafka

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Polling stops while the budget is exhausted, and goes on when others return memory.
func TestBudgetExhausted(t *testing.T) {
	c := newCluster(t, 2)
	c.write(0, names("span", 5)...)
	c.write(1, names("other", 5)...)
	var others *pipeline.Reservation
	m := c.startWith(c.config(), c, 1<<20, func(set *pipeline.Settings) {
		var err error
		if others, err = set.Budget.Reserve(1 << 20); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(others.Release)
	})
	await(t, "polling to wait", func() bool { return m.sample("waiting_for_memory") == 1 })
	c.write(0, "last")
	others.Release()
	c.awaitCommitted()
	c.expectOnce(append(append(names("span", 5), names("other", 5)...), "last")...)
	await(t, "polling", func() bool { return m.sample("waiting_for_memory") == 0 })
}

// Records in queues cannot take the memory that is necessary to process them: with a budget of a
// few records, all are processed.
func TestSmallBudget(t *testing.T) {
	c := newCluster(t, 4)
	all := names("span", 80)
	for i, name := range all {
		c.writeRecord(name, &kgo.Record{Partition: int32(i % 4), Value: encode(t, "jaeger_proto", name)})
	}
	cfg := c.config()
	cfg.Encoding = "jaeger_proto"
	cfg.MaxQueuedSize = 1000
	m := c.start(cfg, c, 200<<10)
	c.awaitCommitted()
	c.expectOnce(all...)
	if m.sample("dead_letters_total") != 0 {
		t.Error("records became dead letters")
	}
}

// While the pipeline blocks, at most max_queued_size and one poll are held.
func TestQueuedSize(t *testing.T) {
	c := newCluster(t, 1)
	const records, size = 100, 20_000
	all := names(strings.Repeat("x", size)+"-span", records)
	c.write(0, all...)
	release := make(chan struct{})
	var calls atomic.Int32
	cfg := c.config()
	cfg.MaxQueuedSize = 3 * size
	cfg.MaxFetchSize, cfg.MaxPartitionFetchSize = size, size
	cfg.MaxConcurrentFetches = 1
	m := c.start(cfg, &destination{c, func(ctx context.Context, _ *otlpdata.Batch, _ []string) error {
		calls.Add(1)
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}, 64<<20)
	await(t, "polling to wait", func() bool { return m.sample("waiting_for_memory") == 1 })
	if used := m.Settings.Budget.Used(); used > 6*size {
		t.Errorf("%d bytes are held", used)
	}
	close(release)
	c.awaitCommitted()
	c.expectOnce(all...)
}

// A record that needs more than the whole budget becomes a dead letter.
func TestLargerThanBudget(t *testing.T) {
	c := newCluster(t, 1)
	c.poison("large")
	c.writeRecord("large", &kgo.Record{Value: encode(t, "jaeger_proto", strings.Repeat("x", 100_000))})
	c.writeRecord("small", &kgo.Record{Value: encode(t, "jaeger_proto", "small")})
	cfg := c.config()
	cfg.Encoding = "jaeger_proto"
	m := c.start(cfg, c, 200<<10)
	c.awaitCommitted()
	c.expectOnce("small")
	if letters := m.Samples(t, prefix+"dead_letters_total", "reason"); letters[reasonTooLarge] != 1 {
		t.Errorf("dead letters: %v", letters)
	}
}

// The first claim of a receiver succeeds even without a budget, further ones do not, and debts are
// paid before records are polled.
func TestClaims(t *testing.T) {
	b := pipeline.NewBudget(1000)
	m := newMemory(b, 100, 200)
	m.addBytes(900)
	first, err := m.claim(500)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.claim(500); !errors.Is(err, pipeline.ErrOverBudget) || pipeline.IsPermanent(err) {
		t.Errorf("second claim: %v", err)
	}
	if err := first.resize(700); err != nil {
		t.Errorf("growing the only claim: %v", err)
	}
	if _, err := m.claim(1001); !pipeline.IsPermanent(err) {
		t.Errorf("claim above the limit: %v", err)
	}
	if b.Used() > 1000 || m.free() {
		t.Errorf("%d bytes used, polling is possible: %v", b.Used(), m.free())
	}
	m.remove(900)
	if !m.free() || m.debt != 0 || b.Used() != 700 {
		t.Errorf("debt %d, %d bytes used, polling is possible: %v", m.debt, b.Used(), m.free())
	}
	if others, err := b.Reserve(250); err != nil || m.free() {
		t.Errorf("polling is possible although others use the budget: %v", err)
	} else {
		others.Release()
	}
	first.release()
	if !m.free() || b.Used() != 0 {
		t.Errorf("%d bytes used at the end", b.Used())
	}
}
