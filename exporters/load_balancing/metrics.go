package loadbalancing

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tracing-backend/tracing/pipeline"
)

// metrics are the metrics of the exporter. Metrics of a backend are removed with the backend, so
// max_backends limits their number.
type metrics struct {
	backends    prometheus.Gauge
	resolutions *prometheus.CounterVec
	spans       *prometheus.CounterVec
}

// spanCounts are the counters of one backend.
type spanCounts struct{ sent, rejected, failed prometheus.Counter }

func newMetrics(set pipeline.Settings) (*metrics, error) {
	m := &metrics{
		backends: prometheus.NewGauge(prometheus.GaugeOpts{Name: "tracing_load_balancing_backends",
			Help: "Number of backends that spans are sent to."}),
		resolutions: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tracing_load_balancing_resolutions_total",
			Help: "Resolutions of the DNS name by outcome."}, []string{"outcome"}),
		spans: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tracing_load_balancing_spans_total",
			Help: "Spans by backend and outcome of the attempt to send them."}, []string{"backend", "outcome"}),
	}
	for _, outcome := range []string{"changed", "unchanged", "failed"} {
		m.resolutions.WithLabelValues(outcome)
	}
	return m, errors.Join(set.Metrics.Register(m.backends), set.Metrics.Register(m.resolutions), set.Metrics.Register(m.spans))
}

// of returns the counters of a backend.
func (m *metrics) of(address string) spanCounts {
	return spanCounts{sent: m.spans.WithLabelValues(address, "sent"), rejected: m.spans.WithLabelValues(address, "rejected"),
		failed: m.spans.WithLabelValues(address, "failed")}
}

// forget removes the counters of a backend.
func (m *metrics) forget(address string) {
	m.spans.DeletePartialMatch(prometheus.Labels{"backend": address})
}
