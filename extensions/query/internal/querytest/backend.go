package querytest

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/pipeline"
)

// NewBackend returns a backend over a store, with low limits and the time Noon, and the registry of
// its metrics.
func NewBackend(t testing.TB, store core.Store, change ...func(*core.Options)) (*core.Backend, *prometheus.Registry) {
	t.Helper()
	reg := prometheus.NewRegistry()
	o := core.Options{
		Store: store,
		Limits: core.Limits{Timeout: time.Minute, PatternTime: time.Minute, Traces: 1000, TraceSize: 1000, Scanned: 1000,
			Aggregated: 5000, Errors: 1000, ErrorScan: 1e6, Queries: 10, Names: 1000, MetricsRange: 24 * time.Hour, MetricsPoints: 10_000,
			MetricsSeries: 1000, Baseline: 24 * time.Hour},
		Memory:  pipeline.NewQueryBudget(1 << 30),
		Logger:  zap.NewNop(),
		Metrics: reg,
		Now:     func() time.Time { return Noon },
	}
	for _, f := range change {
		f(&o)
	}
	b, err := core.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return b, reg
}

// Settings returns the settings of an extension that reports no errors.
func Settings(t testing.TB) pipeline.Settings {
	return pipeline.Settings{
		Logger: zap.NewNop(), Metrics: prometheus.NewRegistry(), Env: pipeline.SystemEnv(), Budget: pipeline.NewBudget(0),
		QueryMemory: pipeline.NewQueryBudget(1 << 30),
		Report:      func(err error) { t.Errorf("reported: %v", err) },
	}
}

// Counts returns the counts of a metric by operation and result.
func Counts(t testing.TB, reg *prometheus.Registry, name string) map[string]uint64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string]uint64)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			out[m.GetLabel()[0].GetValue()+" "+m.GetLabel()[1].GetValue()] = uint64(m.GetCounter().GetValue()) +
				m.GetHistogram().GetSampleCount()
		}
	}
	return out
}
