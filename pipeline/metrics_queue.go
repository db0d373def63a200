package pipeline

import (
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// queueBook knows the sending queues of a process, and shows them as metrics. A component has several while one that was replaced is emptied.
type queueBook struct {
	now                            func() time.Time
	spans, bytes, requests, oldest *prometheus.Desc

	mu     sync.Mutex
	queues map[componentKey][]sendingQueue
}

func newQueueBook(now func() time.Time) *queueBook {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, []string{"component"}, nil)
	}
	return &queueBook{now: now, queues: map[componentKey][]sendingQueue{},
		spans:    desc("tracing_queue_spans", "Spans in the sending queue, those being sent included."),
		bytes:    desc("tracing_queue_bytes", "Bytes in the sending queue, those being sent included."),
		requests: desc("tracing_queue_requests", "Batches that wait in the sending queue."),
		oldest:   desc("tracing_queue_oldest_seconds", "Age of the oldest batch that waits in the sending queue."),
	}
}

// enter notes a queue that was opened. It takes the place of one on disk that was shut: the files are the same. known is how many spans that
// one had left.
func (b *queueBook) enter(key componentKey, q sendingQueue) (known int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, onDisk := q.(*diskQueue); onDisk {
		b.queues[key] = slices.DeleteFunc(b.queues[key], func(old sendingQueue) bool {
			_, onDisk := old.(*diskQueue)
			if onDisk {
				known += old.state().spans
			}
			return onDisk
		})
	}
	b.queues[key] = append(b.queues[key], q)
	return known
}

// forget notes that a queue is empty and will not be used again.
func (b *queueBook) forget(key componentKey, q sendingQueue) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queues[key] = slices.DeleteFunc(b.queues[key], func(other sendingQueue) bool { return other == q })
	if len(b.queues[key]) == 0 {
		delete(b.queues, key)
	}
}

// states returns the state of each component's queues, taken together.
func (b *queueBook) states() map[componentKey]queueState {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := make(map[componentKey]queueState, len(b.queues))
	for key, queues := range b.queues {
		var sum queueState
		for _, q := range queues {
			s := q.state()
			sum.size, sum.bytes, sum.spans = sum.size+s.size, sum.bytes+s.bytes, sum.spans+s.spans
			sum.requests += s.requests
			if sum.oldest.IsZero() || !s.oldest.IsZero() && s.oldest.Before(sum.oldest) {
				sum.oldest = s.oldest
			}
		}
		all[key] = sum
	}
	return all
}

// Describe names the metrics.
func (b *queueBook) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{b.spans, b.bytes, b.requests, b.oldest} {
		ch <- d
	}
}

// Collect reads the queues.
func (b *queueBook) Collect(ch chan<- prometheus.Metric) {
	for key, s := range b.states() {
		gauge := func(d *prometheus.Desc, value float64) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, key.id.String())
		}
		gauge(b.spans, float64(s.spans))
		gauge(b.bytes, float64(s.bytes))
		gauge(b.requests, float64(s.requests))
		age := 0.0
		if !s.oldest.IsZero() {
			age = max(b.now().Sub(s.oldest), 0).Seconds() // clocks are set back
		}
		gauge(b.oldest, age)
	}
}
