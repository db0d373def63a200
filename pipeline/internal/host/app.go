package host

import (
	"context"
	"io"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config"
	"github.com/tracing-backend/tracing/pipeline/internal/delivery"
	"github.com/tracing-backend/tracing/pipeline/selftrace"
	"github.com/tracing-backend/tracing/pipeline/status"
)

// App runs a configuration. It implements [pipeline.Process] and is safe for concurrent use.
type App struct {
	build   status.Build
	began   time.Time
	env     pipeline.Env
	log     *zap.Logger
	level   zap.AtomicLevel
	states  *stateBook
	metrics *metrics
	budget  *pipeline.Budget // requests in flight
	queries *pipeline.Budget
	held    *pipeline.Budget // what processors hold
	tracer  selftrace.Tracer
	// memory is the last logged division of the process's memory.
	memory      atomic.Pointer[memoryPlan]
	connections connectionLimit
	letters     atomic.Pointer[delivery.DeadLetters]
	clientWait  atomic.Int64 // limits.max_wait in nanoseconds
	holdRetry   atomic.Int64 // limits.held_retry in nanoseconds

	manager serviceManager // set by Serve before the start

	changing    sync.Mutex // held while components are started and stopped
	retiring    *retirement
	sockets     *sockets
	selfTracing *selfTracing

	readiness   sync.Mutex // held while a change of the readiness is logged
	loggedReady bool

	mu           sync.Mutex
	config       *config.Config
	graph        *graph
	runningSince time.Time // zero while components start or stop
	started      []*node   // in start order
	reload       status.Reload
}

// Options are the parameters of New. The zero value uses the operating system.
type Options struct {
	Env   *pipeline.Env // nil: pipeline.SystemEnv
	Log   io.Writer     // nil: standard error
	Build status.Build
}

// New builds all components of a configuration. It does not listen, start goroutines or access
// files; Start does.
func New(c *config.Config, o Options) (*App, error) {
	a := &App{build: o.Build, env: pipeline.SystemEnv(), budget: pipeline.NewBudget(int64(c.Service.Limits.Inflight)),
		queries: pipeline.NewQueryBudget(1), held: pipeline.NewHeldBudget(1)}
	if o.Env != nil {
		a.env = *o.Env
	}
	if o.Log == nil {
		o.Log = os.Stderr
	}
	var err error
	if a.log, a.level, err = newLogger(c.Service.Telemetry.Logs, o.Log); err != nil {
		return nil, err
	}
	a.began = a.env.Now()
	a.states = newStateBook(a.env.Now)
	a.sockets, a.retiring = &sockets{open: map[*node][]*socket{}}, newRetirement(a)
	a.selfTracing = newSelfTracing(pipeline.Settings{Logger: a.log, Env: a.env})
	a.metrics = newMetrics(o.Build, a.budget, a.queries, a.held, a.env.Now)
	a.metrics.collectors.MustRegister(newStateMetrics(a), a.selfTracing.spans)
	a.setDeadLetters(&c.Service)
	a.setWaits(&c.Service.Limits)
	g, err := buildGraph(a, c, &survivors{})
	if err != nil {
		return nil, err
	}
	for _, n := range g.nodes {
		a.states.enter(n, status.Starting)
		g.connect(n, a.metrics.delivery)
	}
	a.config, a.graph, a.reload.Since = c, g, a.env.Now()
	a.planMemory().apply(a)
	return a, nil
}

func (a *App) setWaits(l *config.Limits) {
	a.clientWait.Store(int64(l.MaxWait))
	a.holdRetry.Store(int64(l.HeldRetry))
}

func (a *App) setDeadLetters(s *config.Service) {
	a.letters.Store(delivery.NewDeadLetters(s.DeadLetterDir, int64(s.DeadLetterSize), a.env.Now))
}

// current returns the running configuration and its graph.
func (a *App) current() (*config.Config, *graph) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.config, a.graph
}

// Health says whether the process is ready.
func (a *App) Health() status.Health {
	since := a.since()
	if since.IsZero() {
		return status.Health{}
	}
	if reason := a.states.notReady(); reason != "" {
		return status.Health{Since: since, Reason: reason}
	}
	return status.Health{Ready: true, Since: since}
}

// since returns when all components had started. It is zero before that, while the process stops,
// and after a reload that failed and left the process incomplete.
func (a *App) since() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.runningSince
}

// Gatherer returns all metrics of the process and of the components that are running when it
// gathers.
func (a *App) Gatherer() prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		config, graph := a.current()
		if config.Service.Telemetry.Metrics.CompatMetrics {
			return compatGatherer{graph.registry}.Gather()
		}
		return graph.registry.Gather()
	})
}

// Build identifies the program.
func (a *App) Build() status.Build { return a.build }

// LogLevel returns the log level of the process, which can be changed at any time.
func (a *App) LogLevel() zap.AtomicLevel { return a.level }

// Addr returns the address of a component's listener, for example Addr(ID{Type: "otlp"}, "grpc"),
// or "" if there is none.
func (a *App) Addr(id pipeline.ID, listener string) string {
	_, graph := a.current()
	for _, n := range graph.nodes {
		if l, ok := n.component.(pipeline.Addressed); ok && n.config.Key.ID == id {
			if addr := l.Addr(listener); addr != "" {
				return addr
			}
		}
	}
	return ""
}

// AdminHandler returns the routes of a running component that is [pipeline.Administered], or nil.
// It returns nil for processors, which may have several instances.
func (a *App) AdminHandler(kind pipeline.Kind, id pipeline.ID) http.Handler {
	a.mu.Lock()
	i := slices.IndexFunc(a.started, func(n *node) bool { return n.config.Key == config.Key{Kind: kind, ID: id} && n.pipeline == "" })
	var n *node
	if i >= 0 {
		n = a.started[i]
	}
	a.mu.Unlock()
	if n == nil {
		return nil
	}
	c, ok := n.component.(pipeline.Administered)
	if !ok {
		return nil
	}
	return c.AdminHandler()
}

// Durability returns where acknowledged spans of a pipeline are: `in memory (memory), sent (otlp)`.
// For a connector, it refers to the pipelines that the connector feeds: `as in traces/a (forward)`.
func (a *App) Durability(p config.Pipeline) string {
	config, graph := a.current()
	return durability(config, graph, p, "%[2]s (%[1]s)")
}

// heldRetry returns the maximum time for retries of held spans.
func (a *App) heldRetry() time.Duration { return time.Duration(a.holdRetry.Load()) }

// maxWait returns the maximum time that clients of receivers wait for a response.
func (a *App) maxWait() delivery.WaitLimit {
	return delivery.WaitLimit{Max: time.Duration(a.clientWait.Load()), Setting: "service::limits::max_wait"}
}

// maxWait returns the maximum time until a receiver gets the outcome of a batch.
func (n *node) maxWait(a *App) delivery.WaitLimit {
	if w, ok := n.component.(pipeline.MaxWaiter); ok {
		return delivery.WaitLimit{Max: w.MaxWait(), Setting: "limit of the receiver"}
	}
	return a.maxWait()
}

// Config returns the running configuration.
func (a *App) Config() *config.Config {
	c, _ := a.current()
	return c
}

// stopContext returns the context of a stop: it has the stop timeout, even if ctx has ended.
func (a *App) stopContext(ctx context.Context) (context.Context, context.CancelFunc) {
	config, _ := a.current()
	return context.WithTimeout(context.WithoutCancel(ctx), config.Service.StopTimeout.Std())
}
