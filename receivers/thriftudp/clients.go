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
	// clientExpiry is how long a client that is not heard of is remembered; it is looked for every clientCheck.
	clientExpiry = time.Hour
	clientCheck  = 15 * time.Minute
	// longestClientID is for a UUID, and for what else clients may call themselves. Longer ones are not followed.
	longestClientID = 128
	// clientMemory is about what is held of one client, in bytes.
	clientMemory = 400
)

// clients turns the totals that clients tell since their own start into counters of what was new each time. A client says what it lost
// where no server could have seen it.
type clients struct {
	most int
	now  func() time.Time
	log  *zap.Logger

	received, sent prometheus.Counter
	dropped        *prometheus.CounterVec // by cause
	fullQueue      prometheus.Counter     // the three of dropped
	tooLarge       prometheus.Counter
	failedToEmit   prometheus.Counter
	mu             sync.Mutex
	byID           map[string]client
	checked        time.Time // when those not heard of were last looked for
}

// client is what one client said last.
type client struct {
	seqNo  int64
	lost   losses
	counts bool // lost was told
	heard  time.Time
}

// losses are spans that a client lost since its start.
type losses struct{ fullQueue, tooLarge, failedToEmit int64 }

func newClients(set pipeline.Settings, most int) (*clients, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "tracing_agent_client_stats_" + name, Help: help})
	}
	c := &clients{most: most, now: set.Env.Now, log: set.Logger, byID: map[string]client{}, checked: set.Env.Now(),
		received: counter("batches_received", "Batches received of clients that number them."),
		sent:     counter("batches_sent", "Batches that these clients have sent, those included that did not arrive."),
		dropped: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tracing_agent_client_stats_spans_dropped",
			Help: "Spans that these clients have lost, by cause."}, []string{"cause"}),
	}
	c.fullQueue = c.dropped.WithLabelValues("full-queue")
	c.tooLarge = c.dropped.WithLabelValues("too-large")
	c.failedToEmit = c.dropped.WithLabelValues("send-failure")
	connected := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "tracing_agent_client_stats_connected_clients",
		Help: "Clients that number their batches and were heard of within the last hour."}, c.connected)
	for _, m := range []prometheus.Collector{c.received, c.sent, c.dropped, connected} {
		if err := set.Metrics.Register(m); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	return c, nil
}

// heard notes what a client says with a batch. What the first batch says is where counting begins: the client may have been running for long.
func (c *clients) heard(s native.ClientStats) {
	if s.ID == "" || !s.HasSeqNo || len(s.ID) > longestClientID {
		return
	}
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received.Inc()
	if now.Sub(c.checked) >= clientCheck {
		c.expire(now)
	}
	was, known := c.byID[s.ID]
	switch {
	case known && s.SeqNo < was.seqNo: // overtaken by a later one, which said all
		return
	case !known && len(c.byID) >= c.most:
		return
	case !known:
		c.log.Debug("received batch from a new client, starting to keep stats", zap.String("client-uuid", s.ID))
	default:
		c.sent.Add(float64(s.SeqNo) - float64(was.seqNo))
	}
	is := client{seqNo: s.SeqNo, lost: was.lost, counts: was.counts, heard: now}
	if s.HasStats {
		is.lost, is.counts = losses{s.FullQueue, s.TooLarge, s.FailedToEmit}, true
	}
	if was.counts {
		c.lost(was.lost, is.lost)
	}
	c.byID[s.ID] = is
}

// lost counts what is new. Totals that went down are those of a client that counts wrongly.
func (c *clients) lost(was, is losses) {
	count := func(to prometheus.Counter, was, is int64) {
		if is > was {
			to.Add(float64(is) - float64(was))
		}
	}
	count(c.fullQueue, was.fullQueue, is.fullQueue)
	count(c.tooLarge, was.tooLarge, is.tooLarge)
	count(c.failedToEmit, was.failedToEmit, is.failedToEmit)
}

// connected is asked whenever metrics are read, and forgets clients just as batches make it do.
func (c *clients) connected() float64 {
	now := c.now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.checked) >= clientCheck {
		c.expire(now)
	}
	return float64(len(c.byID))
}

// expire forgets clients that were not heard of for long. The caller holds the lock.
func (c *clients) expire(now time.Time) {
	c.checked = now
	for id, is := range c.byID {
		if now.Sub(is.heard) > clientExpiry {
			c.log.Debug("have not heard from a client for a while, freeing stats",
				zap.String("client-uuid", id), zap.Time("last-message", is.heard))
			delete(c.byID, id)
		}
	}
}

func (c *clients) maxMemory() int64 { return int64(c.most) * clientMemory }
