package pipelinetest

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tracing-backend/tracing/pipeline"
)

// Fixture provides the settings of a component in a test, and records what the component does with
// them.
type Fixture struct {
	// Settings are passed to the component. A test may change them before it builds the component.
	// They use the system's clock, files and network.
	Settings pipeline.Settings
	// Registry has the metrics of the component.
	Registry *prometheus.Registry
	// Logs has the log entries of the component, of all levels.
	Logs *observer.ObservedLogs

	mu      sync.Mutex
	reports []error
}

// NewFixture returns a fixture for a component of the given type. budget is the number of bytes
// that may be in flight.
func NewFixture(typ string, budget int64) *Fixture {
	f := &Fixture{Registry: prometheus.NewRegistry()}
	core, logs := observer.New(zap.DebugLevel)
	f.Logs = logs
	f.Settings = pipeline.Settings{ID: pipeline.ID{Type: typ}, Logger: zap.New(core), Metrics: f.Registry, Env: pipeline.SystemEnv(),
		Budget: pipeline.NewBudget(budget), QueryMemory: pipeline.NewQueryBudget(0), Report: f.report}
	return f
}

func (f *Fixture) report(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reports = append(f.reports, err)
}

// Reports returns what the component has reported with Settings.Report, oldest first. nil means
// healthy.
func (f *Fixture) Reports() []error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.reports)
}

// Samples returns the values of a metric by the values of the given labels, joined with spaces. It
// adds up samples with the same values.
func (f *Fixture) Samples(tb testing.TB, metric string, labels ...string) map[string]float64 {
	tb.Helper()
	families, err := f.Registry.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	out := map[string]float64{}
	for _, family := range families {
		if family.GetName() != metric {
			continue
		}
		for _, m := range family.GetMetric() {
			values := make([]string, len(labels))
			for _, l := range m.GetLabel() {
				if i := slices.Index(labels, l.GetName()); i >= 0 {
					values[i] = l.GetValue()
				}
			}
			out[strings.Join(values, " ")] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return out
}

// Refused returns the number of requests that the listeners of the component have refused, by
// listener and reason, which are separated by a space.
func (f *Fixture) Refused(tb testing.TB) map[string]float64 {
	tb.Helper()
	return f.Samples(tb, "tracing_server_refused_requests_total", "listener", "reason")
}

// Start starts a component that a test has built, and stops it when the test ends. A component
// without Start or Stop is fine. The returned function stops the component earlier.
func Start(tb testing.TB, component any) (stop func()) {
	tb.Helper()
	if c, ok := component.(pipeline.Starter); ok {
		if err := c.Start(tb.Context()); err != nil {
			tb.Fatalf("Start: %v", err)
		}
	}
	stop = sync.OnceFunc(func() {
		tb.Helper()
		c, ok := component.(pipeline.Stopper)
		if !ok {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), defaultTimeout)
		defer cancel()
		if err := c.Stop(ctx); err != nil {
			tb.Errorf("Stop: %v", err)
		}
	})
	tb.Cleanup(stop)
	return stop
}

// StartReceiver builds a receiver with the settings of a fixture, starts it, and stops it when the
// test ends. Then it checks that the receiver has reported nothing and has released all bytes in
// flight. The returned function stops the receiver earlier.
func StartReceiver[R any](tb testing.TB, f *Fixture, next pipeline.Consumer,
	build func(pipeline.Settings, pipeline.Consumer) (R, error)) (receiver R, stop func()) {
	tb.Helper()
	receiver, err := build(f.Settings, next)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		for _, err := range f.Reports() {
			tb.Errorf("reported: %v", err)
		}
		if used := f.Settings.Budget.Used(); used != 0 {
			tb.Errorf("%d bytes of the budget are still reserved", used)
		}
	})
	stop = Start(tb, receiver)
	tb.Cleanup(http.DefaultClient.CloseIdleConnections) // runs first, so that the receiver does not wait for them
	return receiver, stop
}

// FixedTime is a clock for Settings.Env.Now that always returns the same time.
func FixedTime() time.Time { return time.Unix(1_700_000_000, 0) }
