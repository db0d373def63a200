package spanmetrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Names of the metrics of calls between services, as in the Collector's connector `servicegraph`.
const (
	requests       = "traces_service_graph_request_total"
	failedRequests = "traces_service_graph_request_failed_total"
	serverSeconds  = "traces_service_graph_request_server_seconds"
)

// ownLabels are the labels of the series.
var ownLabels = slices.Concat(spanLabels, callLabels, []string{"status_code", "le"})

var (
	spanLabels = []string{"service_name", "span_name", "span_kind"}
	callLabels = []string{"client", "server", "connection_type"}
)

// Describe implements prometheus.Collector. It describes nothing, because the registry would
// otherwise check all series against it at each scrape.
func (e *extension) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector with the series as of the last update.
func (e *extension) Collect(ch chan<- prometheus.Metric) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.collectSpans(ch)
	e.collectCalls(ch)
}

// count returns the number of series.
func (e *extension) count() float64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return float64(len(e.spans.series) + len(e.calls.series))
}

func (e *extension) collectSpans(ch chan<- prometheus.Metric) {
	calls := prometheus.NewDesc(e.cfg.Namespace+"_calls_total", "Number of spans. STATUS_CODE_UNSET includes spans with the status ok.",
		append(slices.Clone(spanLabels), "status_code"), nil)
	durations := prometheus.NewDesc(e.cfg.Namespace+"_duration_milliseconds", "Durations of spans of any status.", spanLabels, nil)
	for k, s := range e.spans.series {
		ch <- counter(calls, s.total.succeeded, k.service, k.operation, k.kind, "STATUS_CODE_UNSET")
		ch <- counter(calls, s.total.failed, k.service, k.operation, k.kind, "STATUS_CODE_ERROR")
		ch <- e.histogram(durations, s, time.Millisecond, k.service, k.operation, k.kind)
	}
}

func (e *extension) collectCalls(ch chan<- prometheus.Metric) {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, callLabels, nil) }
	all, failed := desc(requests, "Number of calls between two services."),
		desc(failedRequests, "Number of failed calls between two services.")
	server := desc(serverSeconds, "Durations of calls, measured by the called service, or by the caller if the called service sends no spans.")
	for k, s := range e.calls.series {
		ch <- counter(all, s.total.succeeded+s.total.failed, k.client, k.server, k.connection)
		ch <- counter(failed, s.total.failed, k.client, k.server, k.connection)
		ch <- e.histogram(server, s, time.Second, k.client, k.server, k.connection)
	}
}

func counter(desc *prometheus.Desc, n uint64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), labels...)
}

// histogram returns the durations of a series in a unit.
func (e *extension) histogram(desc *prometheus.Desc, s *series, unit time.Duration, labels ...string) prometheus.Metric {
	buckets, sum := make(map[float64]uint64, len(e.bounds)), uint64(0)
	for i, bound := range e.bounds {
		if s.total.buckets != nil {
			sum += s.total.buckets[i]
		}
		buckets[in(uint64(bound), unit)] = sum
	}
	if s.total.buckets != nil {
		sum += s.total.buckets[len(e.bounds)]
	}
	m := prometheus.MustNewConstHistogram(desc, sum, in(s.total.duration, unit), buckets, labels...)
	exemplars := slices.DeleteFunc(slices.Clone(s.exemplars), func(x prometheus.Exemplar) bool { return x.Labels == nil })
	if len(exemplars) == 0 {
		return m
	}
	return prometheus.MustNewMetricWithExemplars(m, exemplars...)
}

// in returns a number of nanoseconds in a unit.
func in(ns uint64, unit time.Duration) float64 { return float64(ns) / float64(unit) }
