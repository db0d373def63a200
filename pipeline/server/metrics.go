package server

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are those of one listener.
type metrics struct {
	open       prometheus.Gauge
	turnedAway prometheus.Counter
	refused    *prometheus.CounterVec // by reason
	panics     prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, listener string) (*metrics, error) {
	m := &metrics{
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tracing_server_open_connections",
			Help: "Connections that are open now.",
		}),
		turnedAway: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tracing_server_refused_connections_total",
			Help: "Connections that were closed at once, because max_connections were open.",
		}),
		refused: newRefused(),
		panics:  newPanics(),
	}
	reg = prometheus.WrapRegistererWith(prometheus.Labels{"listener": listener}, reg)
	for _, c := range []prometheus.Collector{m.open, m.turnedAway, m.refused, m.panics} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("%s: registering metrics: %w", listener, err)
		}
	}
	return m, nil
}

func newRefused() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tracing_server_refused_requests_total",
		Help: "Requests that were refused before their data was handed on, by reason.",
	}, []string{"reason"})
}

func newPanics() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{
		Name: "tracing_server_panics_total",
		Help: "Requests whose handler panicked, which is a bug.",
	})
}
