package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

var observerType = reflect.TypeFor[Observer]()

// App is one running configuration: the whole program, in a value that tests can own.
type App struct {
	config *Config
	build  Build
	env    Env
	log    *zap.Logger
	level  zap.AtomicLevel
	status *statusBook
	tel    *telemetry
	budget *Budget
	dead   *deadLetters
	graph  *graph

	mu      sync.Mutex
	since   time.Time // zero while not ready
	started []*node   // what must be stopped, in start order
}

// AppOptions are what a program chooses for itself. The zero value is the real world.
type AppOptions struct {
	Env   *Env      // nil: SystemEnv
	Log   io.Writer // nil: standard error
	Build Build
}

// New builds all components of a configuration. Nothing listens, runs or touches a file before Start.
func New(c *Config, o AppOptions) (*App, error) {
	a := &App{config: c, build: o.Build, env: SystemEnv(), budget: NewBudget(int64(c.service.Limits.Inflight))}
	if o.Env != nil {
		a.env = *o.Env
	}
	if o.Log == nil {
		o.Log = os.Stderr
	}
	var err error
	if a.log, a.level, err = newLogger(c.service.Telemetry.Logs, o.Log); err != nil {
		return nil, err
	}
	a.status = newStatusBook(a.env.Now)
	a.tel = newTelemetry(o.Build, a.budget)
	a.dead = newDeadLetters(c.service.DeadLetterDir, int64(c.service.DeadLetterSize), a.env.Now)
	if a.graph, err = buildGraph(a, c); err != nil {
		return nil, err
	}
	for _, n := range a.graph.nodes {
		a.status.enter(n.String(), StateStarting)
	}
	return a, nil
}

// Start starts all components: observers, stores and extensions first, receivers last. When one fails, those that were started are stopped
// again and the error names it.
func (a *App) Start(ctx context.Context) error {
	for _, w := range a.config.warnings {
		a.log.Warn(w)
	}
	for _, n := range a.graph.nodes {
		if err := startSafely(ctx, n); err != nil {
			return errors.Join(fmt.Errorf("starting %s: %w", n, err), a.rollBack(ctx))
		}
		a.status.enter(n.String(), StateOK)
		a.mu.Lock()
		a.started = append(a.started, n)
		a.mu.Unlock()
	}
	for _, p := range a.config.pipelines {
		a.logPipeline(p)
	}
	a.setReady(true)
	return nil
}

// rollBack stops what was started, also when the start failed because ctx ended.
func (a *App) rollBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.config.service.StopTimeout.Std())
	defer cancel()
	return a.stopNodes(ctx)
}

func startSafely(ctx context.Context, n *node) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("BUG: Start panicked: %v\n%s", p, debug.Stack())
		}
	}()
	if s, ok := n.value.(Starter); ok {
		if err := s.Start(ctx); err != nil {
			return err
		}
	}
	if n.edge == nil {
		return nil
	}
	err = n.edge.start()
	if s, ok := n.value.(Stopper); ok && err != nil {
		return errors.Join(err, s.Stop(ctx))
	}
	return err
}

func (a *App) logPipeline(p pipelineConfig) {
	names := func(cs []*componentConfig) []string {
		out := make([]string, len(cs))
		for i, c := range cs {
			out[i] = c.key.id.String()
		}
		return out
	}
	var meaning []string
	for _, n := range a.graph.nodes {
		if slices.Contains(p.exporters, n.config) {
			meaning = append(meaning, n.config.key.id.String()+": "+string(n.edge.keep))
		}
	}
	a.log.Info("pipeline ready", zap.String("pipeline", p.id.String()), zap.Strings("receivers", names(p.receivers)),
		zap.Strings("processors", names(p.processors)), zap.Strings("exporters", names(p.exporters)),
		zap.String("acknowledged-spans-are", strings.Join(meaning, ", ")))
}

// Stop stops everything in reverse order: receivers finish what they took, exporters drain, observers go last. It returns when all is done
// or ctx ends. The last log line is the accounting of all spans.
func (a *App) Stop(ctx context.Context) error {
	a.setReady(false)
	return a.stopNodes(ctx)
}

func (a *App) stopNodes(ctx context.Context) error {
	a.mu.Lock()
	nodes := a.started
	a.started = nil
	a.mu.Unlock()
	var errs []error
	accounted := false
	for _, n := range slices.Backward(nodes) {
		if _, last := n.value.(Observer); last && !accounted {
			a.logAccounting()
			accounted = true
		}
		if err := stopSafely(ctx, n); err != nil {
			errs = append(errs, fmt.Errorf("stopping %s: %w", n, err))
		}
		a.status.enter(n.String(), StateStopped)
	}
	if !accounted {
		a.logAccounting()
	}
	return errors.Join(errs...)
}

// stopSafely empties the queue in front of a component, then stops it.
func stopSafely(ctx context.Context, n *node) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("BUG: Stop panicked: %v\n%s", p, debug.Stack())
		}
	}()
	if n.edge != nil {
		err = n.edge.stop(ctx)
	}
	if s, ok := n.value.(Stopper); ok {
		return errors.Join(err, s.Stop(ctx))
	}
	return err
}

func (a *App) setReady(ready bool) {
	a.mu.Lock()
	was := !a.since.IsZero()
	a.since = time.Time{}
	if ready {
		a.since = a.env.Now()
	}
	a.mu.Unlock()
	if ready != was {
		a.log.Info("Health Check state change", zap.String("status", map[bool]string{true: "ready", false: "unavailable"}[ready]))
	}
}

// Health tells whether the process takes work.
func (a *App) Health() Health {
	a.mu.Lock()
	defer a.mu.Unlock()
	return Health{Ready: !a.since.IsZero(), Since: a.since}
}

// Gatherer collects all metrics of the process.
func (a *App) Gatherer() prometheus.Gatherer {
	if a.config.service.Telemetry.Metrics.CompatMetrics {
		return compatible{a.tel.registry}
	}
	return a.tel.registry
}

// Build says which program this is.
func (a *App) Build() Build { return a.build }

// Addr returns the address of a component's listener, for example Addr(ID{Type: "otlp"}, "grpc"), or "" when there is none.
func (a *App) Addr(id ID, listener string) string {
	for _, n := range a.graph.nodes {
		if l, ok := n.value.(Addressed); ok && n.config.key.id == id {
			if addr := l.Addr(listener); addr != "" {
				return addr
			}
		}
	}
	return ""
}
