package query

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// operation is a kind of question to the store, as metrics name it.
type operation string

const (
	opFindTraces    operation = "find_traces"
	opGetTrace      operation = "get_trace"
	opGetServices   operation = "get_services"
	opGetOperations operation = "get_operations"
)

// metrics counts the questions to the store and how long they took. A trace that does not exist is a good answer.
type metrics struct {
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	labels := []string{"operation", "result"}
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tracing_query_requests_total",
			Help: "Queries by operation and result (ok, err).",
		}, labels),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "tracing_query_latency",
			Help:    "Seconds that queries took, by operation and result (ok, err).",
			Buckets: prometheus.ExponentialBucketsRange(0.001, 60, 15),
		}, labels),
	}
	for _, op := range []operation{opFindTraces, opGetTrace, opGetServices, opGetOperations} {
		m.requests.WithLabelValues(string(op), "ok")
		m.requests.WithLabelValues(string(op), "err")
	}
	if err := reg.Register(m.requests); err != nil {
		return nil, err
	}
	return m, reg.Register(m.latency)
}

func (m *metrics) observe(op operation, took time.Duration, failed bool) {
	result := "ok"
	if failed {
		result = "err"
	}
	m.requests.WithLabelValues(string(op), result).Inc()
	m.latency.WithLabelValues(string(op), result).Observe(took.Seconds())
}
