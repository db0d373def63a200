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
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/zap"
)

var observerType = reflect.TypeFor[Observer]()

// App is one running configuration: the whole program, in a value that tests can own.
type App struct {
	build  Build
	env    Env
	log    *zap.Logger
	level  zap.AtomicLevel
	status *statusBook
	tel    *telemetry
	budget *Budget
	// softLimit is what the garbage collector was told, 0: nothing.
	softLimit atomic.Int64
	dead      atomic.Pointer[deadLetters]

	changing sync.Mutex // held by what starts and stops components
	retiring retirement

	mu      sync.Mutex
	config  *Config
	graph   *graph
	since   time.Time // zero while not ready
	started []*node   // what must be stopped, in start order
	reload  ReloadStatus
}

// AppOptions are what a program chooses for itself. The zero value is the real world.
type AppOptions struct {
	Env   *Env      // nil: SystemEnv
	Log   io.Writer // nil: standard error
	Build Build
}

// New builds all components of a configuration. Nothing listens, runs or touches a file before Start.
func New(c *Config, o AppOptions) (*App, error) {
	a := &App{build: o.Build, env: SystemEnv(), budget: NewBudget(int64(c.service.Limits.Inflight))}
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
	a.tel = newTelemetry(o.Build, a.budget, a.env.Now)
	a.dead.Store(newDeadLetters(&c.service, a.env.Now))
	g, err := buildGraph(a, c, &survivors{})
	if err != nil {
		return nil, err
	}
	for _, n := range g.nodes {
		a.status.enter(n.String(), StateStarting)
		g.connect(n, a.log)
	}
	a.config, a.graph, a.reload.Since = c, g, a.env.Now()
	return a, nil
}

// current returns the configuration in force and its graph.
func (a *App) current() (*Config, *graph) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.config, a.graph
}

// Start starts all components: observers, stores and extensions first, receivers last. When one fails, those that were started are stopped
// again and the error names it.
func (a *App) Start(ctx context.Context) error {
	a.changing.Lock()
	defer a.changing.Unlock()
	config, graph := a.current()
	a.warn(config)
	for _, n := range graph.nodes {
		if err := a.startNode(ctx, n); err != nil {
			return errors.Join(err, a.rollBack(ctx))
		}
	}
	a.logPipelines(config, graph)
	a.setReady(true)
	return nil
}

func (a *App) warn(c *Config) {
	for _, w := range c.warnings {
		a.log.Warn(w)
	}
}

// startNode starts a component and notes that it runs.
func (a *App) startNode(ctx context.Context, n *node) error {
	if n.edge != nil && !n.edge.started {
		a.status.report(n.String()+ofQueue, nil) // what an earlier queue said
	}
	if err := startSafely(ctx, n); err != nil {
		return fmt.Errorf("starting %s: %w", n, err)
	}
	a.status.enter(n.String(), StateOK)
	a.mu.Lock()
	a.started = append(a.started, n)
	a.mu.Unlock()
	return nil
}

// rollBack stops what was started, also when the start failed because ctx ended.
func (a *App) rollBack(ctx context.Context) error {
	ctx, cancel := a.stopContext(ctx)
	defer cancel()
	return a.stopNodes(ctx)
}

// stopContext returns the context of a stop, which has its time also when what ended was ctx.
func (a *App) stopContext(ctx context.Context) (context.Context, context.CancelFunc) {
	config, _ := a.current()
	return context.WithTimeout(context.WithoutCancel(ctx), config.service.StopTimeout.Std())
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
	if n.edge.started {
		n.edge.lead(n)
		return nil
	}
	err = n.edge.start()
	if s, ok := n.value.(Stopper); ok && err != nil {
		return errors.Join(err, s.Stop(ctx))
	}
	return err
}

func (a *App) logPipelines(c *Config, g *graph) {
	for _, p := range c.pipelines {
		a.logPipeline(p, g)
	}
}

func (a *App) logPipeline(p pipelineConfig, g *graph) {
	names := func(cs []*componentConfig) []string {
		out := make([]string, len(cs))
		for i, c := range cs {
			out[i] = c.key.id.String()
		}
		return out
	}
	var meaning []string
	for _, e := range p.exporters {
		meaning = append(meaning, e.key.id.String()+": "+string(g.find(e.key, "").keep))
	}
	a.log.Info("pipeline ready", zap.String("pipeline", p.id.String()), zap.Strings("receivers", names(p.receivers)),
		zap.Strings("processors", names(p.processors)), zap.Strings("exporters", names(p.exporters)),
		zap.String("acknowledged-spans-are", strings.Join(meaning, ", ")))
}

// Stop stops everything in reverse order: receivers finish what they took, exporters drain, observers go last. It returns when all is done
// or ctx ends. The last log line is the accounting of all spans.
func (a *App) Stop(ctx context.Context) error {
	a.setReady(false)
	a.changing.Lock()
	defer a.changing.Unlock()
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
			a.retiring.wait(ctx)
			a.logAccounting()
			accounted = true
		}
		if err := stopSafely(ctx, n); err != nil {
			errs = append(errs, fmt.Errorf("stopping %s: %w", n, err))
		}
		a.status.enter(n.String(), StateStopped)
	}
	if !accounted {
		a.retiring.wait(ctx)
		a.logAccounting()
	}
	return errors.Join(errs...)
}

// stopSafely empties the queue in front of a component, then stops it.
func stopSafely(ctx context.Context, n *node) (err error) {
	if n.edge != nil {
		err = n.edge.stop(ctx)
	}
	return errors.Join(err, stopValue(ctx, n))
}

// stopValue stops a component alone.
func stopValue(ctx context.Context, n *node) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("BUG: Stop panicked: %v\n%s", p, debug.Stack())
		}
	}()
	if s, ok := n.value.(Stopper); ok {
		return s.Stop(ctx)
	}
	return nil
}

// forget takes a component off the list of those that run, and reports whether it was on it.
func (a *App) forget(n *node) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.Index(a.started, n)
	if i >= 0 {
		a.started = slices.Delete(slices.Clone(a.started), i, i+1)
	}
	return i >= 0
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

// Gatherer collects all metrics of the process, those of the components that run when it is asked.
func (a *App) Gatherer() prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		config, graph := a.current()
		if config.service.Telemetry.Metrics.CompatMetrics {
			return compatible{graph.registry}.Gather()
		}
		return graph.registry.Gather()
	})
}

// Build says which program this is.
func (a *App) Build() Build { return a.build }

// Addr returns the address of a component's listener, for example Addr(ID{Type: "otlp"}, "grpc"), or "" when there is none.
func (a *App) Addr(id ID, listener string) string {
	_, graph := a.current()
	for _, n := range graph.nodes {
		if l, ok := n.value.(Addressed); ok && n.config.key.id == id {
			if addr := l.Addr(listener); addr != "" {
				return addr
			}
		}
	}
	return ""
}
