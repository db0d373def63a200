package delivery_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tracing-backend/tracing/pipeline/soak"
	"github.com/tracing-backend/tracing/test/engines/kafka/broker"
	"github.com/tracing-backend/tracing/test/harness"
)

const (
	// loadInterval is the time between two requests to a collector, long enough to read every trace
	// from the store twice.
	loadInterval = 100 * time.Millisecond
	// requestsPerKill is the number of requests that each collector acknowledges between two kills.
	requestsPerKill = 20
)

// TestKilled kills the leader of a partition, an ingester, a collector and the store with SIGKILL,
// again and again, while clients send spans to two collectors. Every acknowledged span is found
// exactly once, and whenever the store is killed, it has all spans of the records below the offsets
// that were committed until then.
func TestKilled(t *testing.T) {
	kills, seed := soak.Rounds(t, 20, 4), soak.Seed(t)
	c := newCampaign(t, broker.Start(t, broker.Options{}), 2, 2, seed)
	kinds := []struct {
		name string
		kill func()
		done int
	}{{"leader", c.killLeader, 0}, {"ingester", c.killIngester, 0}, {"collector", c.killCollector, 0}, {"store", c.killStore, 0}}
	for n := range kills {
		if n%len(kinds) == 0 {
			c.rnd.Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
		}
		c.progress(c.requestsPerKill())
		time.Sleep(time.Duration(c.rnd.IntN(300)) * time.Millisecond) // the time of the kill is random
		k := &kinds[n%len(kinds)]
		start := time.Now()
		k.kill()
		c.progress(1)
		k.done++
		t.Logf("%s: kill %d: %s, progress after %.1f s", start.Format(time.TimeOnly), n+1, k.name, time.Since(start).Seconds())
	}
	c.progress(c.requestsPerKill())
	r := c.end()
	for _, k := range kinds {
		t.Logf("killed %d times: %s", k.done, k.name)
	}
	r.log()
}

// campaign is an installation under load.
type campaign struct {
	*installation
	rnd     *rand.Rand
	sent    *harness.SentSpans
	loads   []*harness.SteadyLoad
	offsets *offsets
	checks  int // of offsets after a kill of the store
	behind  int // index of the broker that was restarted, or -1
}

// newCampaign starts an installation and sends spans to each of its collectors.
func newCampaign(t *testing.T, brokers *broker.Cluster, collectors, ingesters int, seed uint64) *campaign {
	t.Helper()
	c := &campaign{installation: install(t, brokers, collectors, ingesters), rnd: rand.New(rand.NewPCG(seed, 0)),
		sent: harness.NewSentSpans(), behind: -1}
	c.offsets = watchOffsets(c.installation)
	for n, m := range c.collectors {
		c.loads = append(c.loads, harness.StartLoad(t, m.address, seed+uint64(n), c.sent, loadInterval))
	}
	return c
}

// requestsPerKill returns the number of requests that each collector acknowledges before the next
// kill.
func (c *campaign) requestsPerKill() int {
	if testing.Short() {
		return requestsPerKill / 4
	}
	return requestsPerKill
}

// progress waits until each collector has acknowledged a number of further requests, and the store
// has accepted further spans.
func (c *campaign) progress(requests int) {
	c.t.Helper()
	before := c.store.acceptedSpans()
	want := make([]int, len(c.loads))
	for n, l := range c.loads {
		want[n] = l.Acked() + requests
	}
	for n, l := range c.loads {
		l.Await(want[n])
	}
	harness.Poll(c.t, "the store accepts spans", func() bool { return c.store.acceptedSpans() > before })
}

// killLeader kills the leader of a partition, waits for progress without it, and starts it again.
// It catches up while others are killed.
func (c *campaign) killLeader() {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Minute)
	defer cancel()
	if c.behind >= 0 { // at most one of three replicas may be missing
		if err := c.WaitReady(ctx, c.behind); err != nil {
			c.t.Fatal(err)
		}
	}
	leader, err := c.Leader(ctx, c.topic, int32(c.rnd.IntN(partitions)))
	if err != nil {
		c.t.Fatal(err)
	}
	c.Kill(leader)
	c.progress(c.requestsPerKill())
	if err := c.Restart(leader); err != nil {
		c.t.Fatal(err)
	}
	c.behind = leader
}

// killIngester kills an ingester and starts it again.
func (c *campaign) killIngester() {
	c.t.Helper()
	m := c.ingesters[c.rnd.IntN(len(c.ingesters))]
	m.kill()
	c.offsets.awaitSample()
	m.start(c.t)
}

// killCollector kills a collector and starts it again. Clients send again what was not
// acknowledged.
func (c *campaign) killCollector() {
	c.t.Helper()
	m := c.collectors[c.rnd.IntN(len(c.collectors))]
	m.kill()
	m.start(c.t)
}

// killStore kills the store. When the ingesters have noticed it, it stops them, starts the store
// again, and checks that the store has everything below the committed offsets.
func (c *campaign) killStore() {
	c.t.Helper()
	c.store.kill()
	c.offsets.awaitSample()
	time.Sleep(time.Duration(c.rnd.IntN(1000)) * time.Millisecond) // ingesters may commit what was acknowledged
	for _, m := range c.ingesters {
		m.pause()
	}
	c.offsets.awaitSample()
	c.store.start(c.t)
	c.offsets.check()
	c.checks++
	for _, m := range c.ingesters {
		m.resume()
	}
}

// result are the figures of a campaign.
type result struct {
	c                            *campaign
	acknowledged, refused, found int
	repeatedRecords              float64
	accepted                     float64
}

// end stops the load, waits until everything in the topic is committed, and checks all spans.
func (c *campaign) end() result {
	c.t.Helper()
	r := result{c: c}
	for _, l := range c.loads {
		r.refused += l.End().Refused
	}
	c.offsets.awaitAll()
	c.offsets.check()
	r.acknowledged, r.found = c.sent.Check(c.t, c.store.QueryURL())
	for _, m := range c.ingesters {
		r.repeatedRecords += m.repeatedRecords()
	}
	r.accepted = c.store.acceptedSpans()
	for _, members := range [][]*member{c.collectors, c.ingesters, {c.store}} {
		for _, m := range members {
			if code := m.Terminate(); code != 0 {
				c.t.Errorf("exit code %d after SIGTERM", code)
			}
			m.Accounting()
		}
	}
	return r
}

// log prints the figures.
func (r result) log() {
	o := r.c.offsets
	r.c.t.Logf("%d spans acknowledged, %d refused, %d found, 0 lost, 0 duplicates", r.acknowledged, r.refused, r.found)
	r.c.t.Logf("%d records with %d spans in the topic: %d spans were resent after errors", o.records, o.spans, o.spans-r.found)
	r.c.t.Logf("about %.0f spans stored more than once (%.2f %%); receivers know of %.0f repeated records",
		max(0, r.accepted-float64(o.spans)), 100*max(0, r.accepted-float64(o.spans))/float64(o.spans), r.repeatedRecords)
	r.c.t.Logf("%d committed offsets in the log, %d below an earlier one; %d times compared with a store that was killed, 0 ahead of it",
		o.samples, o.backward, r.c.checks)
}
