package core

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"

	"github.com/tracing-backend/tracing/pipeline/selftrace"
)

// Operation is a kind of store query, as the metrics label it.
type Operation string

// The kinds of store queries.
const (
	OpFindTraces      Operation = "find_traces"
	OpFindSummaries   Operation = "find_trace_summaries"
	OpGetTrace        Operation = "get_trace"
	OpGetServices     Operation = "get_services"
	OpGetOperations   Operation = "get_operations"
	OpGetDependencies Operation = "get_dependencies"
	OpArchiveTrace    Operation = "archive_trace"
	OpGetLatencies    Operation = "get_latencies"
	OpGetCallRates    Operation = "get_call_rates"
	OpGetErrorRates   Operation = "get_error_rates"
	OpGetMinStep      Operation = "get_min_step_duration"
	OpGetTags         Operation = "get_tags"
	OpGetTagValues    Operation = "get_tag_values"
	OpAggregate       Operation = "aggregate"
	OpGetPerformance  Operation = "get_service_performance"
	OpGetUsage        Operation = "get_usage"
	OpGetErrors       Operation = "get_errors"
	OpGetChanges      Operation = "get_changes"
	OpExplain         Operation = "explain"
	OpGetStatus       Operation = "get_status"
)

func operations() []Operation {
	return []Operation{OpFindTraces, OpFindSummaries, OpGetTrace, OpGetServices, OpGetOperations, OpGetDependencies, OpArchiveTrace,
		OpGetLatencies, OpGetCallRates, OpGetErrorRates, OpGetMinStep, OpGetTags, OpGetTagValues, OpAggregate,
		OpGetPerformance, OpGetUsage, OpGetErrors, OpGetChanges, OpExplain, OpGetStatus}
}

// isQuick reports whether an operation usually takes little time and memory: lists of names and
// single traces, which users need before anything else.
func (op Operation) isQuick() bool {
	switch op {
	case OpGetTrace, OpGetServices, OpGetOperations, OpGetTags, OpGetMinStep, OpGetStatus, OpArchiveTrace:
		return true
	}
	return false
}

// hasResults reports whether to count the number of results of an operation.
func (op Operation) hasResults() bool {
	switch op {
	case OpGetLatencies, OpGetCallRates, OpGetErrorRates, OpGetMinStep, OpAggregate, OpGetPerformance, OpGetUsage, OpGetErrors, OpGetChanges,
		OpExplain, OpGetStatus:
		return false
	}
	return true
}

// cutInterval is the minimum time between two warnings about lists with too many names.
const cutInterval = time.Minute

// metrics counts store queries, their latencies and results.
type metrics struct {
	requests  *prometheus.CounterVec
	latency   *prometheus.HistogramVec
	responses *prometheus.HistogramVec
	cut       *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	labels := []string{"operation", "result"}
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tracing_query_requests_total",
			Help: "Number of queries by operation and result (ok, err).",
		}, labels),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "tracing_query_latency",
			Help:    "Latency of queries in seconds by operation and result (ok, err).",
			Buckets: prometheus.DefBuckets,
		}, labels),
		responses: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "tracing_query_responses",
			Help:    "Number of results of successful queries by operation.",
			Buckets: prometheus.ExponentialBuckets(1, 4, 8),
		}, labels[:1]),
		cut: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "tracing_query_cut_lists_total",
			Help: "Number of lists of services or operations that left out names because of max_names.",
		}, labels[:1]),
	}
	for _, op := range []Operation{OpGetServices, OpGetOperations} {
		m.cut.WithLabelValues(string(op))
	}
	for _, op := range operations() {
		m.requests.WithLabelValues(string(op), "ok")
		m.requests.WithLabelValues(string(op), "err")
	}
	for _, c := range []prometheus.Collector{m.requests, m.latency, m.responses, m.cut} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) observe(op Operation, took time.Duration, failed bool) {
	result := "ok"
	if failed {
		result = "err"
	}
	m.requests.WithLabelValues(string(op), result).Inc()
	m.latency.WithLabelValues(string(op), result).Observe(took.Seconds())
}

// Measure runs a store query, counts and times it, and records it as a span if self-tracing is on.
// Meanwhile, the context of the Slot has this span. query returns the number of results.
func (s *Slot) Measure(query func() (int, error)) error {
	start, outer := s.backend.opts.Now(), s.ctx
	ctx, span := s.backend.opts.Tracer.Start(outer, string(s.op))
	s.ctx = ctx
	n, err := query()
	s.ctx = outer
	if span.IsRecording() {
		span.SetAttributes(attribute.Int("tracing.query.results", n))
	}
	selftrace.End(span, err)
	s.backend.Observe(s.op, s.backend.opts.Now().Sub(start), n, err)
	return err
}

// Observe counts a query that took some time and gave n results or an error. A missing trace, a
// client that disconnects, and an overload do not count as errors of the store.
func (b *Backend) Observe(op Operation, took time.Duration, n int, err error) {
	failed := err != nil && !IsBusy(err)
	for _, usual := range []error{ErrTraceNotFound, ErrUndelivered, context.Canceled} {
		failed = failed && !errors.Is(err, usual)
	}
	b.metrics.observe(op, took, failed)
	if err == nil && op.hasResults() {
		b.metrics.responses.WithLabelValues(string(op)).Observe(float64(n))
	}
}
