package query

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// operation is a kind of question to the store, as metrics name it.
type operation string

const (
	opFindTraces      operation = "find_traces"
	opFindSummaries   operation = "find_trace_summaries"
	opGetTrace        operation = "get_trace"
	opGetServices     operation = "get_services"
	opGetOperations   operation = "get_operations"
	opGetDependencies operation = "get_dependencies"
	opArchiveTrace    operation = "archive_trace"
	opGetLatencies    operation = "get_latencies"
	opGetCallRates    operation = "get_call_rates"
	opGetErrorRates   operation = "get_error_rates"
	opGetMinStep      operation = "get_min_step_duration"
	opGetTags         operation = "get_tags"
	opGetTagValues    operation = "get_tag_values"
	opAggregate       operation = "aggregate"
)

func operations() []operation {
	return []operation{opFindTraces, opFindSummaries, opGetTrace, opGetServices, opGetOperations, opGetDependencies, opArchiveTrace,
		opGetLatencies, opGetCallRates, opGetErrorRates, opGetMinStep, opGetTags, opGetTagValues, opAggregate}
}

// hasResults reports whether the number of results says anything: how calls went is one.
func (op operation) hasResults() bool {
	switch op {
	case opGetLatencies, opGetCallRates, opGetErrorRates, opGetMinStep, opAggregate:
		return false
	}
	return true
}

// metrics counts the questions to the store, how long they took, and their results. A trace that does not exist is a good answer.
type metrics struct {
	requests  *prometheus.CounterVec
	latency   *prometheus.HistogramVec
	responses *prometheus.HistogramVec
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
			Buckets: prometheus.DefBuckets,
		}, labels),
		responses: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "tracing_query_responses",
			Help:    "Number of results of a query that was answered, by operation.",
			Buckets: prometheus.ExponentialBuckets(1, 4, 8),
		}, labels[:1]),
	}
	for _, op := range operations() {
		m.requests.WithLabelValues(string(op), "ok")
		m.requests.WithLabelValues(string(op), "err")
	}
	for _, c := range []prometheus.Collector{m.requests, m.latency, m.responses} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) observe(op operation, took time.Duration, failed bool) {
	result := "ok"
	if failed {
		result = "err"
	}
	m.requests.WithLabelValues(string(op), result).Inc()
	m.latency.WithLabelValues(string(op), result).Observe(took.Seconds())
}
