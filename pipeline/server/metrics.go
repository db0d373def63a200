package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tracing-backend/tracing/pipeline/server/internal/listen"
)

// metrics are the metrics of one HTTP or gRPC listener.
type metrics struct {
	openConns    prometheus.Gauge
	refusedConns prometheus.Counter
	refused      *prometheus.CounterVec // requests, by reason
	panics       prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, listener string) (*metrics, error) {
	m := &metrics{
		openConns: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "tracing_server_open_connections",
			Help: "Currently open connections.",
		}),
		refusedConns: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "tracing_server_refused_connections_total",
			Help: "Connections closed immediately because max_connections were open.",
		}),
		refused: listen.NewRefusedCounter(),
		panics:  listen.NewPanicCounter(),
	}
	return m, listen.Register(reg, listener, m.openConns, m.refusedConns, m.refused, m.panics)
}

// newDurations returns the histogram of request durations of one HTTP listener. It has no label for
// the path, because clients choose the path.
func newDurations(reg prometheus.Registerer, listener string) (*prometheus.HistogramVec, error) {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "tracing_server_http_request_duration",
		Help:    "Seconds from the headers of a request to the end of its response, by method and status.",
		Buckets: prometheus.DefBuckets,
	}, []string{"method", "status"})
	return h, listen.Register(reg, listener, h)
}

// observe records the duration of a request.
func (s *HTTP) observe(w *responseTracker, r *http.Request, took time.Duration) {
	status := w.status
	if status == 0 { // net/http sends 200 for a handler that writes nothing
		status = http.StatusOK
	}
	s.durations.WithLabelValues(methodLabel(r.Method), strconv.Itoa(status)).Observe(took.Seconds())
}

// methodLabel bounds the number of label values: clients may send any method.
func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}
