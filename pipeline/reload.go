package pipeline

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// ReloadStatus tells which configuration is in force, and why a later one is not.
type ReloadStatus struct {
	Since        time.Time  `json:"since"`                   // when the configuration in force was taken
	Reloads      int        `json:"reloads"`                 // how often another one was taken while the process ran
	Problem      string     `json:"problem,omitempty"`       // why the latest one was not
	ProblemSince *time.Time `json:"problem_since,omitempty"` // when that was
}

// Results of tracing_config_reloads_total.
const (
	reloadApplied   = "applied"
	reloadUnchanged = "unchanged"
	reloadRefused   = "refused"
)

type reloadMetrics struct {
	total      *prometheus.CounterVec
	last, when prometheus.Gauge
}

func newReloadMetrics(now time.Time) reloadMetrics {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	m := reloadMetrics{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tracing_config_reloads_total",
			Help: "Times that the configuration was loaded again while the process ran: applied, unchanged, or refused for a mistake."}, []string{"result"}),
		last: gauge("tracing_config_last_reload_successful", "1, or 0 when the configuration that was loaded last was refused."),
		when: gauge("tracing_config_last_reload_success_timestamp_seconds", "When the configuration in force was loaded, in seconds since the epoch."),
	}
	for _, result := range []string{reloadApplied, reloadUnchanged, reloadRefused} {
		m.total.WithLabelValues(result)
	}
	m.last.Set(1)
	m.when.Set(seconds(now))
	return m
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

// note counts a reload.
func (m *reloadMetrics) note(result string, now time.Time) {
	m.total.WithLabelValues(result).Inc()
	if result == reloadRefused {
		m.last.Set(0)
		return
	}
	m.last.Set(1)
	m.when.Set(seconds(now))
}

// Reload makes a running process run another configuration, which load returns. Everything is built before anything is stopped. Components
// whose settings and references are the same go on, with their connections; listeners that stay refuse nobody, and callers whose way leads through
// what is exchanged wait for a moment. Queues in front of exporters go on when their own settings are the same; what a queue in memory holds of an
// exporter that goes is sent before it ends.
//
// An error says why the configuration in force stays, and Status shows it; the process then runs as before. Only when a component could neither be
// replaced nor started again is the process not ready after that, see Health, and should be stopped.
func (a *App) Reload(ctx context.Context, load func() (*Config, error)) error {
	a.changing.Lock()
	defer a.changing.Unlock()
	changed, err := a.change(ctx, load)
	now := a.env.Now()
	a.mu.Lock()
	a.reload.Problem, a.reload.ProblemSince = "", nil
	result := reloadUnchanged
	switch {
	case err != nil:
		a.reload.Problem, a.reload.ProblemSince, result = err.Error(), &now, reloadRefused
	case changed:
		a.reload.Since, result = now, reloadApplied
		a.reload.Reloads++
	}
	a.mu.Unlock()
	a.tel.reloads.note(result, now)
	switch {
	case err == nil:
		a.log.Info("the configuration was loaded again", zap.String("result", result))
	case errors.Is(err, errBroken):
		a.log.Error("the configuration was not taken, and the one before is not whole any more", zap.Error(err))
		a.setReady(false)
	default:
		a.log.Error("the configuration was not taken; the one before stays in force", zap.Error(err))
	}
	return err
}

func (a *App) change(ctx context.Context, load func() (*Config, error)) (changed bool, err error) {
	if !a.Health().Ready {
		return false, errors.New("the process is not running")
	}
	c, err := load()
	if err != nil {
		return false, err
	}
	before, from := a.current()
	if err := before.needsRestart(c); err != nil {
		return false, err
	}
	to, err := buildGraph(a, c, from.survivors(a.started))
	if err != nil {
		return false, err
	}
	t := &transition{app: a, from: from, to: to}
	if t.empty() && sameConfig(reflect.ValueOf(&before.service).Elem(), reflect.ValueOf(&c.service).Elem()) {
		a.settle(before, from)
		return false, nil
	}
	a.warn(c)
	now, err := t.run(ctx, before)
	if err != nil {
		a.settle(before, now)
		return false, err
	}
	a.adopt(&before.service, &c.service)
	a.settle(c, now)
	a.logPipelines(c, now)
	return true, nil
}

// settle makes a graph the one that runs.
func (a *App) settle(c *Config, g *graph) {
	a.tel.own.only(g.registry)
	names := map[string]bool{}
	for _, n := range g.nodes {
		n.metrics.only(g.registry)
		names[n.String()] = true
	}
	a.mu.Lock()
	before := a.graph
	a.config, a.graph = c, g
	a.mu.Unlock()
	a.reorder(g)
	for _, n := range before.nodes {
		if !names[n.String()] {
			a.status.leave(n.String())
		}
	}
}

// reorder puts what runs into the order of the graph, in which it will be stopped. What runs and is not in the graph is stopped before.
func (a *App) reorder(g *graph) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var ordered, others []*node
	for _, n := range g.nodes {
		if slices.Contains(a.started, n) {
			ordered = append(ordered, n)
		}
	}
	for _, n := range a.started {
		if !g.has(n) {
			others = append(others, n)
		}
	}
	a.started = append(ordered, others...)
}

// adopt takes over what a configuration says about the process itself. The level of the log is left alone where the file says what it said
// before: somebody may have changed it meanwhile.
func (a *App) adopt(before, now *serviceConfig) {
	if level := now.Telemetry.Logs.Level; level != before.Telemetry.Logs.Level {
		if l, err := parseLevel(level); err == nil { // it was checked when it was loaded
			a.level.SetLevel(l)
		}
	}
	if now.DeadLetterDir != before.DeadLetterDir || now.DeadLetterSize != before.DeadLetterSize {
		a.dead.Store(newDeadLetters(now, a.env.Now))
	}
}

// needsRestart returns an error for what cannot be changed in a running process.
func (c *Config) needsRestart(next *Config) error {
	fixed := func(key, is, becomes string) error {
		if is == becomes {
			return nil
		}
		return fmt.Errorf("service::%s: %q cannot become %q while the process runs; restart it", key, is, becomes)
	}
	return errors.Join(fixed("data_dir", c.service.DataDir, next.service.DataDir),
		fixed("limits::inflight", c.service.Limits.Inflight.String(), next.service.Limits.Inflight.String()),
		fixed("telemetry::logs::encoding", c.service.Telemetry.Logs.Encoding, next.service.Telemetry.Logs.Encoding))
}
