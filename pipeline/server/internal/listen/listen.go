package listen

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tracing-backend/tracing/pipeline"
)

// StopGrace is how long Stop waits for handlers after it has closed their connections and canceled
// their contexts.
const StopGrace = time.Second

// Error describes why the endpoint of the named listener cannot be listened on, and which key to
// change.
func Error(name string, endpoint pipeline.Endpoint, err error) error {
	hint := "check the address"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		hint = "another process uses this port; stop it or choose another port"
	case errors.Is(err, syscall.EACCES):
		hint = "the current user may not use this port; choose a port above 1023"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		hint = "this machine does not have this address; use localhost, 0.0.0.0 or one of its own addresses"
	}
	return fmt.Errorf("%s.endpoint: cannot listen on %s: %w (%s)", name, endpoint, err, hint)
}

// Wait returns when done is closed, or after d.
func Wait(d time.Duration, done <-chan struct{}) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
	case <-t.C:
	}
}

// NewRefusedCounter returns the counter of refused requests, with the label reason.
func NewRefusedCounter() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "tracing_server_refused_requests_total",
		Help: "Requests refused before their data entered the pipeline, by reason.",
	}, []string{"reason"})
}

// NewPanicCounter returns the counter of panics in handlers.
func NewPanicCounter() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{
		Name: "tracing_server_panics_total",
		Help: "Requests whose handler panicked, which is a bug.",
	})
}

// Register registers the collectors with the label listener.
func Register(reg prometheus.Registerer, listener string, collectors ...prometheus.Collector) error {
	reg = Labeled(reg, listener)
	for _, c := range collectors {
		if err := reg.Register(c); err != nil {
			return fmt.Errorf("%s: registering metrics: %w", listener, err)
		}
	}
	return nil
}

// Labeled returns a registerer that adds the label listener.
func Labeled(reg prometheus.Registerer, listener string) prometheus.Registerer {
	return prometheus.WrapRegistererWith(prometheus.Labels{"listener": listener}, reg)
}
