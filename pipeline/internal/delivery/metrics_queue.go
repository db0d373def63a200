package delivery

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// queueMetrics collects metrics of the sending queues of a process. A component has several queues
// while a replaced one is emptied.
type queueMetrics struct {
	now                     func() time.Time
	items                   [2]*prometheus.Desc // spans and log records, by otlpdata.Signal
	bytes, requests, oldest *prometheus.Desc

	mu     sync.Mutex
	queues map[Component][]sendingQueue
}

func newQueueMetrics(now func() time.Time) *queueMetrics {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{"component"}, nil)
	}
	return &queueMetrics{now: now, queues: map[Component][]sendingQueue{},
		items: [2]*prometheus.Desc{
			desc("tracing_queue_spans", "Spans in the sending queue, including spans that are being sent."),
			desc("tracing_queue_log_records", "Log records in the sending queue, including log records that are being sent."),
		},
		bytes:    desc("tracing_queue_bytes", "Bytes in the sending queue, including bytes that are being sent."),
		requests: desc("tracing_queue_requests", "Batches waiting in the sending queue."),
		oldest:   desc("tracing_queue_oldest_seconds", "Age of the oldest batch waiting in the sending queue."),
	}
}

// add adds a queue that was opened. A queue on disk replaces the closed one of the same component,
// which has the same files; known is the number of spans that the closed one held.
func (m *queueMetrics) add(c Component, q sendingQueue) (known int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, onDisk := q.(*diskQueue); onDisk {
		m.queues[c] = slices.DeleteFunc(m.queues[c], func(old sendingQueue) bool {
			_, onDisk := old.(*diskQueue)
			if onDisk {
				known += old.state().spans
			}
			return onDisk
		})
	}
	m.queues[c] = append(m.queues[c], q)
	return known
}

// remove removes a queue that is empty and will not be reused.
func (m *queueMetrics) remove(c Component, q sendingQueue) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queues[c] = slices.DeleteFunc(m.queues[c], func(other sendingQueue) bool { return other == q })
	if len(m.queues[c]) == 0 {
		delete(m.queues, c)
	}
}

// states returns the total state of each component's queues.
func (m *queueMetrics) states() map[Component]queueState {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make(map[Component]queueState, len(m.queues))
	for c, queues := range m.queues {
		var sum queueState
		for _, q := range queues {
			s := q.state()
			sum.size, sum.bytes, sum.spans = sum.size+s.size, sum.bytes+s.bytes, sum.spans+s.spans
			sum.requests += s.requests
			if sum.oldest.IsZero() || !s.oldest.IsZero() && s.oldest.Before(sum.oldest) {
				sum.oldest = s.oldest
			}
		}
		all[c] = sum
	}
	return all
}

// Describe describes the metrics.
func (m *queueMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.items[otlpdata.SignalTraces], m.items[otlpdata.SignalLogs], m.bytes, m.requests, m.oldest} {
		ch <- d
	}
}

// Collect reads the queues.
func (m *queueMetrics) Collect(ch chan<- prometheus.Metric) {
	for c, s := range m.states() {
		gauge := func(d *prometheus.Desc, value float64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, c.Name())
		}
		ch <- prometheus.MustNewConstMetric(m.items[c.Signal], prometheus.GaugeValue, float64(s.spans), c.ID)
		gauge(m.bytes, float64(s.bytes))
		gauge(m.requests, float64(s.requests))
		age := 0.0
		if !s.oldest.IsZero() {
			age = max(m.now().Sub(s.oldest), 0).Seconds() // the clock may be set back
		}
		gauge(m.oldest, age)
	}
}
