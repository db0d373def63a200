package batch

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// clients call Consume of a processor whose sends take a while, and record when they were answered.
type clients struct {
	t       *testing.T
	p       *batcher
	sink    *sink
	start   time.Time
	wg      sync.WaitGroup
	mu      sync.Mutex
	answers map[string]time.Duration // since start, by name
}

func newClients(t *testing.T, sending time.Duration, change func(*Config)) *clients {
	s := &sink{consume: func(context.Context, *otlpdata.Batch) error { time.Sleep(sending); return nil }}
	return &clients{t: t, p: build(t, s, change), sink: s, start: time.Now(), answers: map[string]time.Duration{}}
}

// send sends n spans as a client of its own.
func (c *clients) send(tenant, name string, n int) {
	c.wg.Go(func() {
		if err := c.p.Consume(c.t.Context(), request(c.t, tenant, name, n)); err != nil {
			c.t.Errorf("%s: %v", name, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.answers[name] = time.Since(c.start)
	})
	synctest.Wait()
}

// check waits for all responses and compares them with the expected times.
func (c *clients) check(sends int, want map[string]time.Duration) {
	c.t.Helper()
	c.wg.Wait()
	if fmt.Sprint(c.answers) != fmt.Sprint(want) || len(c.sink.got) != sends {
		c.t.Errorf("%d sends, answers %v; want %d sends, %v", len(c.sink.got), c.answers, sends, want)
	}
}

// checkQueues checks the number of queues that the processor holds.
func (c *clients) checkQueues(want int) {
	c.t.Helper()
	synctest.Wait()
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	if len(c.p.queues) != want {
		c.t.Errorf("%d queues, want %d", len(c.p.queues), want)
	}
}

// collector is what many files of the Collector have.
func collector(c *Config) { c.Timeout, c.SendBatchSize = pipeline.Duration(10*time.Second), 8192 }

// A client that sends one request after another is answered when its spans are sent, whatever the
// timeout is: no other client sends spans that it could wait for.
func TestCallersDoNotWaitForMoreSpans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClients(t, time.Millisecond, collector)
		for i := range 17 {
			c.send("", fmt.Sprint("request ", i), 512)
			c.wg.Wait()
		}
		if took := time.Since(c.start); took != 17*time.Millisecond {
			t.Errorf("17 requests took %s, want 17ms", took)
		}
	})
}

// While requests are being sent, others of the same tenant wait for the end and are joined.
func TestTimeoutJoinsDuringASend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClients(t, time.Second, func(c *Config) { collector(c); c.Concurrency = 4 })
		c.send("", "a", 1)
		c.send("", "b", 1)
		c.send("", "c", 1)
		c.send("other", "d", 1)
		c.check(3, map[string]time.Duration{"a": time.Second, "b": 2 * time.Second, "c": 2 * time.Second, "d": time.Second})
		c.checkQueues(0)
	})
}

// Callers wait for the end of a slow send at most for a second from their arrival, and not if they
// have enough spans.
func TestTimeoutIsAMaximum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClients(t, time.Minute, func(c *Config) { collector(c); c.SendBatchSize, c.SendBatchMaxSize, c.Concurrency = 3, 3, 9 })
		c.send("", "slow", 1)
		c.send("", "many", 4)
		c.send("", "a", 1)
		time.Sleep(500 * time.Millisecond)
		c.send("", "b", 1)
		time.Sleep(400 * time.Millisecond)
		c.send("", "c", 2) // does not fit: waits on
		c.check(4, map[string]time.Duration{"slow": time.Minute, "many": time.Minute, "a": 60900 * time.Millisecond,
			"b": 60900 * time.Millisecond, "c": 61900 * time.Millisecond})
	})
}

// min_interval separates the starts of batches, but not of different tenants, and not if there are
// enough spans. The first request does not wait.
func TestMinInterval(t *testing.T) {
	for _, timeout := range []time.Duration{0, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			c := newClients(t, 10*time.Millisecond, func(c *Config) {
				c.Timeout, c.MinInterval, c.SendBatchSize = pipeline.Duration(timeout), pipeline.Duration(time.Second), 8
				c.Concurrency = 4
			})
			c.send("", "a", 1)
			time.Sleep(100 * time.Millisecond)
			c.send("", "b", 1)
			c.send("other", "c", 1)
			time.Sleep(100 * time.Millisecond)
			c.send("", "d", 1)
			time.Sleep(2 * time.Second) // the interval has ended
			c.send("", "e", 1)
			c.send("", "many", 8)
			c.send("other", "f", 1)
			ms := time.Millisecond
			c.check(6, map[string]time.Duration{"a": 10 * ms, "b": 1010 * ms, "c": 110 * ms, "d": 1010 * ms, "e": 2210 * ms, "many": 2210 * ms,
				"f": 2210 * ms})
			c.checkQueues(2)
			time.Sleep(time.Second)
			c.checkQueues(0)
		})
	}
}
