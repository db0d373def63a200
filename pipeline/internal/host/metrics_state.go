package host

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tracing-backend/tracing/pipeline/status"
)

// stateMetrics collects the state of a process as metrics: readiness, degraded components, spans
// that are not accounted for, and the fill level of queues.
type stateMetrics struct {
	app *App

	ready, degraded, unaccounted, queueLimit, queueUsage *prometheus.Desc
}

func newStateMetrics(a *App) *stateMetrics {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("tracing_"+name, help, labels, nil)
	}
	return &stateMetrics{app: a,
		ready:    desc("ready", "1 if the process is ready, 0 while it starts or stops and while a component makes it not ready."),
		degraded: desc("component_degraded", "1 if the component is degraded, otherwise 0.", "component", "kind"),
		unaccounted: desc("pipeline_unaccounted_spans",
			"Received spans without an outcome, beyond the spans that requests in progress can hold.", "pipelines"),
		queueLimit: desc("queue_limit_bytes", "Limit sending_queue.max_bytes.", "component"),
		queueUsage: desc("queue_usage_ratio", "Used part of the sending queue, from 0 to 1: of max_bytes or queue_size, whichever is larger.",
			"component"),
	}
}

// Describe describes the metrics.
func (m *stateMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.ready, m.degraded, m.unaccounted, m.queueLimit, m.queueUsage} {
		ch <- d
	}
}

// Collect reads the state. It reads no store.
func (m *stateMetrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	report := m.app.Status()
	gauge(m.ready, boolValue(m.app.Health().Ready))
	for c, degraded := range degradedComponents(&report) {
		gauge(m.degraded, boolValue(degraded), c.id, c.kind)
	}
	busy := m.app.budget.Used()
	in := m.app.balanceInput(report.Pipelines)
	busy = max(busy, m.app.budget.Used())
	for _, b := range status.Balances(in) {
		if b.Verdict != status.Unknown {
			gauge(m.unaccounted, float64(b.Unaccounted(busy)), strings.Join(b.Pipelines, ", "))
		}
	}
	for _, q := range m.app.queues() {
		gauge(m.queueLimit, float64(q.MaxBytes), q.Component)
		gauge(m.queueUsage, usage(&q), q.Component)
	}
}

type componentName struct{ id, kind string }

// degradedComponents returns the running components and whether they are degraded in any pipeline.
func degradedComponents(r *status.Report) map[componentName]bool {
	out := map[componentName]bool{}
	add := func(all []status.Component) {
		for _, c := range all {
			name := componentName{c.Component, c.Kind}
			out[name] = out[name] || c.State == status.Degraded
		}
	}
	for _, p := range r.Pipelines {
		add(p.Components)
	}
	add(r.Beside)
	return out
}

// usage returns the used part of a queue.
func usage(q *status.Queue) (ratio float64) {
	if q.MaxBytes > 0 {
		ratio = float64(q.Bytes) / float64(q.MaxBytes)
	}
	if q.MaxSize > 0 {
		ratio = max(ratio, float64(q.Size)/float64(q.MaxSize))
	}
	return ratio
}

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
