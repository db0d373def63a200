package server

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// newDurations makes the histogram of how long requests of one listener took. It has no label for the path, which is the client's choice.
func newDurations(reg prometheus.Registerer, listener string) (*prometheus.HistogramVec, error) {
	h := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "tracing_server_http_request_duration",
		Help:    "Seconds from the headers of a request to the end of its answer, by method and status.",
		Buckets: prometheus.DefBuckets,
	}, []string{"method", "status"})
	if err := prometheus.WrapRegistererWith(prometheus.Labels{"listener": listener}, reg).Register(h); err != nil {
		return nil, fmt.Errorf("%s: registering metrics: %w", listener, err)
	}
	return h, nil
}

// observe counts a request that has been answered.
func (s *HTTP) observe(w *answer, r *http.Request, took time.Duration) {
	status := w.status
	if status == 0 { // a handler that writes nothing answers so
		status = http.StatusOK
	}
	s.durations.WithLabelValues(methodLabel(r.Method), strconv.Itoa(status)).Observe(took.Seconds())
}

// methodLabel bounds the values of the label: a method is whatever a client sends.
func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}
