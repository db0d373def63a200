package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config"
	"github.com/tracing-backend/tracing/pipeline/status"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// Start starts all components: observers, stores and extensions first, receivers last. If one
// fails, the components that were started are stopped, and the error names the one that failed.
func (a *App) Start(ctx context.Context) error {
	a.changing.Lock()
	defer a.changing.Unlock()
	config, graph := a.current()
	a.logWarnings(config)
	spans, err := a.newSpanSource(ctx, &config.Service.Telemetry)
	if err != nil {
		return err
	}
	a.useSpanSource(ctx, spans)
	for _, n := range graph.nodes {
		if err := a.startNode(ctx, n); err != nil {
			return errors.Join(err, a.rollBack(ctx))
		}
	}
	a.logPipelines(config, graph)
	a.setRunning(true)
	return nil
}

func (a *App) logWarnings(c *config.Config) {
	for _, w := range c.Warnings() {
		a.log.Warn(w)
	}
}

// startNode starts a component and records that it runs.
func (a *App) startNode(ctx context.Context, n *node) error {
	if n.edge != nil && !n.edge.Started() {
		a.states.reportQueue(n.String(), nil) // remove the report of an earlier queue
	}
	if err := startSafely(ctx, n); err != nil {
		return fmt.Errorf("starting %s: %w", n, a.adviseOnFolder(err))
	}
	a.states.enter(n, status.OK)
	a.mu.Lock()
	a.started = append(a.started, n)
	a.mu.Unlock()
	return nil
}

// adviseOnFolder adds advice to a file system error in service.data_dir: where the folder is and
// what to do.
func (a *App) adviseOnFolder(err error) error {
	dir := filepath.Clean(a.Config().Service.DataDir)
	var at *fs.PathError
	switch {
	case errors.Is(err, vfs.ErrLocked):
	case !errors.As(err, &at) || !strings.HasPrefix(filepath.Clean(at.Path)+"/", dir+"/"):
		return err
	}
	return fmt.Errorf("%w; %s", err, config.FolderAdvice(dir, err))
}

// rollBack stops the components that were started, even if ctx has ended.
func (a *App) rollBack(ctx context.Context) error {
	ctx, cancel := a.stopContext(ctx)
	defer cancel()
	return a.stopNodes(ctx)
}

// startSafely starts a component, then the queue before it.
func startSafely(ctx context.Context, n *node) (err error) {
	defer func() {
		if err != nil && n.held != nil {
			n.held.Forget() // a component that has not started is not stopped
		}
	}()
	defer n.recoverCall("Start", &err)
	if n.held != nil {
		n.held.Lead(n.component.(pipeline.Holder))
	}
	if s, ok := n.component.(pipeline.Starter); ok {
		if err := s.Start(ctx); err != nil {
			return err
		}
	}
	if n.edge == nil {
		return nil
	}
	if n.edge.Started() {
		n.lead()
		return nil
	}
	err = n.edge.Start()
	if s, ok := n.component.(pipeline.Stopper); ok && err != nil {
		return errors.Join(err, s.Stop(ctx))
	}
	return err
}

func (a *App) logPipelines(c *config.Config, g *graph) {
	for _, p := range c.Pipelines {
		a.log.Info("pipeline ready", zap.String("pipeline", p.ID.String()), zap.Strings("receivers", ids(p.Receivers)),
			zap.Strings("processors", ids(p.Processors)), zap.Strings("exporters", ids(p.Exporters)),
			zap.String("acknowledged-"+signalOf(p).Key()+"-are", durability(c, g, p, "%s: %s")))
	}
}

// durability returns where acknowledged spans of a pipeline are. format has the id of a component
// and where it keeps spans.
func durability(c *config.Config, g *graph, p config.Pipeline, format string) string {
	var parts []string
	for _, e := range p.Exporters {
		where := string(g.member(p, e).durability)
		if e.Key.Kind == pipeline.KindConnector {
			var fed []string
			for _, f := range c.FedBy(e) {
				fed = append(fed, f.ID.String())
			}
			where = "as in " + strings.Join(fed, ", ")
		}
		parts = append(parts, fmt.Sprintf(format, e.Key.ID, where))
	}
	text := strings.Join(parts, ", ")
	if h := p.Holder(); h != nil {
		text = fmt.Sprintf(format, h.Key.ID, pipeline.DurabilityMemory) + ", later " + text
	}
	return text
}

func ids(cs []*config.Component) []string {
	out := make([]string, len(cs))
	for i, c := range cs {
		out[i] = c.Key.ID.String()
	}
	return out
}

// Stop stops all components in reverse order: receivers finish accepted requests, exporters send
// what is queued, observers stop last. It returns when all have stopped or ctx ends. The last log
// line is the accounting of all spans.
func (a *App) Stop(ctx context.Context) error {
	a.setRunning(false)
	a.changing.Lock()
	defer a.changing.Unlock()
	return a.stopNodes(ctx)
}

func (a *App) stopNodes(ctx context.Context) error {
	a.retiring.hurry()
	a.useSpanSource(ctx, nil) // while the destination, which may be this process, still accepts spans
	defer a.selfTracing.lines.Close()
	a.mu.Lock()
	nodes := a.started
	a.started = nil
	a.mu.Unlock()
	var errs []error
	accounted := false
	for _, n := range slices.Backward(nodes) {
		if n.config.Key.Kind != pipeline.KindReceiver {
			a.retiring.awaitComponents(ctx) // they use what runs still
		}
		if _, observer := n.component.(pipeline.Observer); observer && !accounted {
			a.finishAccounting(ctx)
			accounted = true
		}
		if err := stopSafely(ctx, n); err != nil {
			errs = append(errs, fmt.Errorf("stopping %s: %w", n, err))
		}
		a.states.enter(n, status.Stopped)
	}
	if !accounted {
		a.finishAccounting(ctx)
	}
	return errors.Join(errs...)
}

// finishAccounting waits for removed exporters that are emptying their queues, and logs the outcome
// of all spans.
func (a *App) finishAccounting(ctx context.Context) {
	a.retiring.awaitQueues(ctx)
	a.metrics.delivery.LogAccounting(a.log, a.budget.Peak())
}

// stopSafely stops the queue before a component, then the component.
func stopSafely(ctx context.Context, n *node) (err error) {
	if n.edge != nil {
		err = n.edge.Stop(ctx)
	}
	return errors.Join(err, stopComponent(ctx, n))
}

// stopComponent stops a component but not the queue before it.
func stopComponent(ctx context.Context, n *node) (err error) {
	if n.held != nil {
		defer n.held.Forget()
	}
	defer n.recoverCall("Stop", &err)
	if s, ok := n.component.(pipeline.Stopper); ok {
		return s.Stop(ctx)
	}
	return nil
}

// removeStarted removes a component from the list of started ones and reports whether it was there.
func (a *App) removeStarted(n *node) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.Index(a.started, n)
	if i >= 0 {
		a.started = slices.Delete(slices.Clone(a.started), i, i+1)
	}
	return i >= 0
}

// setRunning records that all components have started, or that the process stops.
func (a *App) setRunning(running bool) {
	a.mu.Lock()
	a.runningSince = time.Time{}
	if running {
		a.runningSince = a.env.Now()
	}
	a.mu.Unlock()
	a.updateReadiness()
}

// updateReadiness logs whether the process is ready if that has changed.
func (a *App) updateReadiness() {
	a.readiness.Lock()
	defer a.readiness.Unlock()
	h := a.Health()
	if h.Ready == a.loggedReady {
		return
	}
	a.loggedReady = h.Ready
	text := map[bool]string{true: "ready", false: "unavailable"}[h.Ready]
	fields := []zap.Field{zap.String("status", text)}
	if h.Reason != "" {
		fields = append(fields, zap.String("reason", h.Reason))
	}
	a.log.Info("Health Check state change", fields...)
	a.manager.health(h)
}
