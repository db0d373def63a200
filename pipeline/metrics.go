package pipeline

import (
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Limits of the metrics that have a label per service.
const (
	// maxServiceLabels is how many services get a label value of their own; further ones share otherServices.
	maxServiceLabels = 4000
	otherServices    = "other-services"
	// maxServiceNames bounds the names that are remembered: several can have one label value.
	maxServiceNames = 4 * maxServiceLabels
)

// telemetry holds the metrics that the framework keeps at the edges of components.
type telemetry struct {
	own       *registration
	collector *collectorMetrics
	spans     *prometheus.CounterVec
	retries   *prometheus.CounterVec
	lost      *prometheus.CounterVec // batches of queues on disk
	queues    *queueBook
	reloads   reloadMetrics
}

func newTelemetry(b Build, budget *Budget, now func() time.Time) *telemetry {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	t := &telemetry{
		own: &registration{},
		spans: counter("tracing_pipeline_spans_total",
			"Spans by what became of them. Receivers: received = accepted + refused. Exporters: in = sent + refused + dropped + queued.",
			"component", "kind", "outcome", "reason"),
	}
	t.retries = counter("tracing_exporter_retries_total", "Attempts to send beyond the first of each batch.", "component")
	t.lost = counter("tracing_queue_lost_batches_total", "Batches of a sending queue on disk that a damaged file has cost.", "component")
	t.queues = newQueueBook(now)
	t.reloads = newReloadMetrics(now())
	t.collector = newCollectorMetrics(t.own)
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tracing_build_info", Help: "Always 1; the labels say which program this is.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Commit, "build_date": b.Date},
	})
	info.Set(1)
	gauge := func(name, help string, value func() int64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	t.own.MustRegister(t.spans, t.retries, t.lost, t.queues, t.reloads.total, t.reloads.last, t.reloads.when, info,
		gauge("tracing_inflight_bytes", "Bytes of requests in memory now.", budget.Used),
		gauge("tracing_inflight_peak_bytes", "Most bytes of requests that were in memory at once.", budget.Peak),
		gauge("tracing_inflight_limit_bytes", "Limit service.limits.inflight.", budget.Limit),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return t
}

// serviceLabels gives label values to service names: letters in lower case, everything but a-z, 0-9, `-` and `.` replaced by `_`
// (reference 9), and no more than maxServiceLabels of them.
type serviceLabels struct {
	mu     sync.RWMutex
	names  map[string]string
	labels map[string]bool
}

func (l *serviceLabels) label(service string) string {
	l.mu.RLock()
	label, ok := l.names[service]
	l.mu.RUnlock()
	if ok {
		return label
	}
	label = normalizeService(service)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.names == nil {
		l.names, l.labels = map[string]string{}, map[string]bool{otherServices: true}
	}
	if !l.labels[label] {
		if len(l.labels) >= maxServiceLabels {
			return otherServices
		}
		l.labels[label] = true
	}
	if len(l.names) < maxServiceNames {
		l.names[strings.Clone(service)] = label
	}
	return label
}

func normalizeService(s string) string {
	const longest = 256
	b := []byte(s[:min(len(s), longest)])
	for i, c := range b {
		switch {
		case c >= 'A' && c <= 'Z':
			b[i] = c + 'a' - 'A'
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '.':
		default:
			b[i] = '_'
		}
	}
	return string(b)
}
