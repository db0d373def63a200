package thriftudp

import (
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/pipeline"
)

const (
	// clientExpiry is how long the statistics of a silent client are kept. Expired clients are
	// removed every expiryInterval.
	clientExpiry   = time.Hour
	expiryInterval = 15 * time.Minute
	// maxClientID is the maximum length of a client id in bytes. Clients with a longer id are not
	// tracked. Most ids are UUIDs.
	maxClientID = 128
	// clientMemory is the approximate memory per client, in bytes.
	clientMemory = 400
)

// clients tracks the statistics that clients send with their batches: totals since the start of the
// client, including spans that were lost before they reached a server. It adds the difference from
// the previous totals to counters.
type clients struct {
	limit int // number of clients
	now   func() time.Time
	log   *zap.Logger

	received, sent prometheus.Counter
	dropped        *prometheus.CounterVec // by cause
	fullQueue      prometheus.Counter     // children of dropped
	tooLarge       prometheus.Counter
	failedToEmit   prometheus.Counter
	mu             sync.Mutex
	byID           map[string]client
	lastExpiry     time.Time
}

// client holds the last statistics of a client.
type client struct {
	seqNo     int64
	dropped   droppedSpans
	hasCounts bool // dropped was received
	lastSeen  time.Time
}

// droppedSpans counts the spans that a client dropped since its start.
type droppedSpans struct{ fullQueue, tooLarge, failedToEmit int64 }

func newClients(set pipeline.Settings, limit int) (*clients, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "tracing_agent_client_stats_" + name, Help: help})
	}
	c := &clients{limit: limit, now: set.Env.Now, log: set.Logger, byID: map[string]client{}, lastExpiry: set.Env.Now(),
		received: counter("batches_received", "Batches received from clients that number their batches."),
		sent:     counter("batches_sent", "Batches sent by clients that number their batches, including lost ones."),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tracing_agent_client_stats_spans_dropped",
			Help: "Spans dropped by clients, by cause."}, []string{"cause"}),
	}
	c.fullQueue = c.dropped.WithLabelValues("full-queue")
	c.tooLarge = c.dropped.WithLabelValues("too-large")
	c.failedToEmit = c.dropped.WithLabelValues("send-failure")
	connected := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "tracing_agent_client_stats_connected_clients",
		Help: "Clients that number their batches and sent one within the last hour."}, c.connected)
	for _, m := range []prometheus.Collector{c.received, c.sent, c.dropped, connected} {
		if err := set.Metrics.Register(m); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	return c, nil
}

// record adds the statistics received with a batch. The first statistics of a client are only the
// baseline, because the client may have started long before.
func (c *clients) record(s native.ClientStats) {
	if s.ID == "" || !s.HasSeqNo || len(s.ID) > maxClientID {
		return
	}
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received.Inc()
	if now.Sub(c.lastExpiry) >= expiryInterval {
		c.expire(now)
	}
	old, known := c.byID[s.ID]
	switch {
	case known && s.SeqNo < old.seqNo: // arrived out of order; a later batch had newer totals
		return
	case !known && len(c.byID) >= c.limit:
		return
	case !known:
		c.log.Debug("received batch from a new client, starting to keep stats", zap.String("client-uuid", s.ID))
	default:
		c.sent.Add(float64(s.SeqNo) - float64(old.seqNo))
	}
	updated := client{seqNo: s.SeqNo, dropped: old.dropped, hasCounts: old.hasCounts, lastSeen: now}
	if s.HasStats {
		updated.dropped, updated.hasCounts = droppedSpans{s.FullQueue, s.TooLarge, s.FailedToEmit}, true
	}
	if old.hasCounts {
		c.countDropped(old.dropped, updated.dropped)
	}
	c.byID[s.ID] = updated
}

// countDropped adds the difference between two totals to the counters. It ignores totals that
// decreased.
func (c *clients) countDropped(before, after droppedSpans) {
	count := func(to prometheus.Counter, before, after int64) {
		if after > before {
			to.Add(float64(after) - float64(before))
		}
	}
	count(c.fullQueue, before.fullQueue, after.fullQueue)
	count(c.tooLarge, before.tooLarge, after.tooLarge)
	count(c.failedToEmit, before.failedToEmit, after.failedToEmit)
}

// connected returns the number of tracked clients, for the metric. It also removes expired clients.
func (c *clients) connected() float64 {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.lastExpiry) >= expiryInterval {
		c.expire(now)
	}
	return float64(len(c.byID))
}

// expire removes clients that have been silent for clientExpiry. The caller holds c.mu.
func (c *clients) expire(now time.Time) {
	c.lastExpiry = now
	for id, cl := range c.byID {
		if now.Sub(cl.lastSeen) > clientExpiry {
			c.log.Debug("have not heard from a client for a while, freeing stats",
				zap.String("client-uuid", id), zap.Time("last-message", cl.lastSeen))
			delete(c.byID, id)
		}
	}
}

func (c *clients) maxMemory() int64 { return int64(c.limit) * clientMemory }
