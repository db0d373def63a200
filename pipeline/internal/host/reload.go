package host

import (
	"context"
	"errors"
	"slices"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline/internal/config"
)

// Reload replaces the running configuration by the configuration that load returns.
//
// All new components are built before any is stopped. Components with unchanged settings and
// references keep running, with their connections. Callers whose spans pass a component that is
// replaced wait for a moment; listeners that keep running refuse no requests. A queue is kept if
// its own settings are unchanged; a queue in memory of a removed exporter is emptied before the
// exporter stops.
//
// If Reload returns an error, the previous configuration stays, and Status has the error. If a
// component could neither be replaced nor restarted, the process is not ready afterwards and should
// be stopped.
func (a *App) Reload(ctx context.Context, load func() (*config.Config, error)) error {
	a.changing.Lock()
	defer a.changing.Unlock()
	changed, err := a.change(ctx, load)
	a.recordReload(changed, err)
	switch {
	case err == nil:
	case errors.Is(err, errBroken):
		a.log.Error("configuration reload failed and the previous configuration could not be restored", zap.Error(err))
		a.setRunning(false)
	default:
		a.log.Error("configuration reload failed; the previous configuration stays", zap.Error(err))
	}
	return err
}

// recordReload records the result of a reload for Status and metrics.
func (a *App) recordReload(changed bool, err error) {
	now, result := a.env.Now(), reloadUnchanged
	a.mu.Lock()
	a.reload.Problem, a.reload.ProblemSince = "", nil
	switch {
	case err != nil:
		a.reload.Problem, a.reload.ProblemSince, result = err.Error(), &now, reloadRefused
	case changed:
		a.reload.Since, result = now, reloadApplied
		a.reload.Reloads++
	}
	a.mu.Unlock()
	a.metrics.reloads.count(result, now)
	if err == nil {
		a.log.Info("reloaded configuration", zap.String("result", result))
	}
}

func (a *App) change(ctx context.Context, load func() (*config.Config, error)) (changed bool, err error) {
	if a.since().IsZero() {
		return false, errors.New("process is not running")
	}
	c, err := load()
	if err != nil {
		return false, err
	}
	before, from := a.current()
	if err := before.Service.NeedsRestart(&c.Service); err != nil {
		return false, err
	}
	to, err := buildGraph(a, c, from.survivors(a.started))
	if err != nil {
		return false, err
	}
	t := &transition{app: a, from: from, to: to}
	if t.empty() && config.Equal(&before.Service, &c.Service) {
		a.setCurrent(before, from)
		return false, nil
	}
	spans, changed, err := a.changedSpanSource(ctx, &before.Service.Telemetry, &c.Service.Telemetry)
	if err != nil {
		a.setCurrent(before, from)
		return false, err
	}
	a.logWarnings(c)
	now, err := t.run(ctx, before)
	if err != nil {
		a.setCurrent(before, now)
		spans.shutdown(ctx, a.log)
		return false, err
	}
	if changed {
		a.useSpanSource(ctx, spans)
	}
	a.applyService(&before.Service, &c.Service)
	a.setCurrent(c, now)
	a.logPipelines(c, now)
	return true, nil
}

// setCurrent makes c and g the running configuration and graph.
func (a *App) setCurrent(c *config.Config, g *graph) {
	a.metrics.collectors.keepOnly(g.registry)
	for _, n := range g.nodes {
		n.collectors.keepOnly(g.registry)
	}
	a.mu.Lock()
	a.config, a.graph = c, g
	a.mu.Unlock()
	a.sortStarted(g)
	a.states.keepOnly(g)
	a.updateReadiness()
}

// sortStarted sorts the started nodes in the order of the graph. Nodes that are not in the graph
// come last, so that they are stopped first.
func (a *App) sortStarted(g *graph) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var inGraph, others []*node
	for _, n := range g.nodes {
		if slices.Contains(a.started, n) {
			inGraph = append(inGraph, n)
		}
	}
	for _, n := range a.started {
		if !g.has(n) {
			others = append(others, n)
		}
	}
	a.started = append(inGraph, others...)
}

// applyService applies changed settings of the process itself. It keeps the log level unless the
// setting has changed: the level may have been changed at runtime.
func (a *App) applyService(before, now *config.Service) {
	if logs := now.Telemetry.Logs; logs.Level != before.Telemetry.Logs.Level {
		if l, err := logs.ZapLevel(); err == nil { // never fails: Load has checked the level
			a.level.SetLevel(l)
		}
	}
	if now.DeadLetterDir != before.DeadLetterDir || now.DeadLetterSize != before.DeadLetterSize {
		a.setDeadLetters(now)
	}
	a.setWaits(&now.Limits)
}
