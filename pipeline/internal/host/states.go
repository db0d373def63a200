package host

import (
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config"
	"github.com/tracing-backend/tracing/pipeline/internal/delivery"
	"github.com/tracing-backend/tracing/pipeline/status"
)

// stateBook records the states of nodes, and of the queues of exporters by the name of their node:
// a queue may outlive its exporter.
type stateBook struct {
	now func() time.Time

	mu     sync.Mutex
	nodes  map[*node]*nodeState
	queues map[string]*health
}

type nodeState struct {
	phase status.State // starting, ok or stopped
	since time.Time    // of phase
	health
}

// health is the latest report of a node or queue.
type health struct {
	degraded error     // nil: healthy
	reported time.Time // when degraded became nil or not nil
}

func newStateBook(now func() time.Time) *stateBook {
	return &stateBook{now: now, nodes: map[*node]*nodeState{}, queues: map[string]*health{}}
}

// enter records that a node entered a phase.
func (b *stateBook) enter(n *node, phase status.State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.of(n)
	s.phase, s.since = phase, b.now()
}

func (b *stateBook) of(n *node) *nodeState {
	s := b.nodes[n]
	if s == nil {
		s = &nodeState{}
		b.nodes[n] = s
	}
	return s
}

// report records the report of a node and returns the previous one.
func (b *stateBook) report(n *node, err error) (before error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.of(n).report(err, b.now())
}

// reportQueue records the report of the queue of an exporter and returns the previous one.
func (b *stateBook) reportQueue(name string, err error) (before error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.queues[name]
	if h == nil {
		h = &health{}
		b.queues[name] = h
	}
	return h.report(err, b.now())
}

func (h *health) report(err error, now time.Time) (before error) {
	before = h.degraded
	if (before == nil) != (err == nil) {
		h.reported = now
	}
	h.degraded = err
	return before
}

// component returns the state of a node.
func (b *stateBook) component(n *node) status.Component {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := *b.of(n)
	if queue := b.queues[n.String()]; s.degraded == nil && queue != nil && queue.degraded != nil {
		s.health = *queue
	}
	c := status.Component{Component: n.config.Key.ID.String(), Kind: n.config.Key.Kind.String(), State: s.phase, Since: s.since}
	if h, ok := n.component.(pipeline.Holder); ok && s.phase != status.Stopped {
		c.Held = h.Held()
	}
	if s.phase == status.OK && s.reported.After(s.since) {
		c.Since = s.reported
	}
	if s.phase == status.OK && s.degraded != nil {
		c.State, c.Reason = status.Degraded, s.degraded.Error()
	}
	return c
}

// keepOnly forgets all nodes that are not in the graph, and their queues.
func (b *stateBook) keepOnly(g *graph) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.nodes, func(n *node, _ *nodeState) bool { return !g.has(n) })
	names := map[string]bool{}
	for _, n := range g.nodes {
		names[n.String()] = true
	}
	maps.DeleteFunc(b.queues, func(name string, _ *health) bool { return !names[name] })
}

// notReady returns why the process is not ready: the first such reason of a running component with
// the name of the component, or "".
func (b *stateBook) notReady() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var reasons []string
	for n, s := range b.nodes {
		if s.phase != status.Stopped && s.degraded != nil && pipeline.IsNotReady(s.degraded) {
			reasons = append(reasons, n.String()+": "+s.degraded.Error())
		}
	}
	for name, q := range b.queues {
		if q.degraded != nil && pipeline.IsNotReady(q.degraded) {
			reasons = append(reasons, name+" queue: "+q.degraded.Error())
		}
	}
	if len(reasons) == 0 {
		return ""
	}
	return slices.Min(reasons)
}

// Messages about reports of components.
const (
	msgDegraded  = "component is degraded"
	msgRecovered = "component recovered"
)

// reporter returns a function that records the state of a node or queue with record, and logs
// changes.
func (a *App) reporter(log *zap.Logger, record func(error) (before error)) func(error) {
	lines := pipeline.NewRepeatLog(pipeline.Settings{Logger: log, Env: a.env})
	return func(err error) {
		before := record(err)
		switch {
		case err == nil && before != nil:
			lines.End(msgDegraded)
			lines.Info(msgRecovered)
		case err != nil && (before == nil || before.Error() != err.Error()):
			lines.End(msgRecovered)
			lines.Warn(msgDegraded, zap.Error(err))
		}
		a.updateReadiness()
	}
}

// Status returns the state of every component and of the configuration.
func (a *App) Status() status.Report {
	a.mu.Lock()
	c, graph := a.config, a.graph
	report := status.Report{State: status.OK, Pipelines: []status.Pipeline{}, Beside: []status.Component{}, Configuration: a.reload}
	a.mu.Unlock()
	if report.Configuration.Problem != "" {
		report.State = status.Degraded
	}
	inPipeline := map[config.Key]bool{}
	for _, p := range c.Pipelines {
		s := status.Pipeline{Pipeline: p.ID.String(), State: status.OK}
		for _, m := range p.Members() {
			inPipeline[m.Key] = true
			part := status.Component{Component: m.Key.ID.String(), Kind: m.Key.Kind.String(), State: status.Stopped}
			if n := graph.member(p, m); n != nil { // nil after a reload that failed to rebuild it
				part = a.states.component(n)
			}
			part.Component = delivery.NameOf(m.Key.ID.String(), signalOf(p))
			if m.Key.Kind == pipeline.KindConnector {
				part.Role = roleOf(m, p).String()
			}
			s.Components = append(s.Components, part)
			s.State = status.Worse(s.State, part.State)
		}
		report.Pipelines = append(report.Pipelines, s)
		report.State = status.Worse(report.State, s.State)
	}
	for _, n := range graph.nodes {
		if !inPipeline[n.config.Key] {
			part := a.states.component(n)
			report.Beside = append(report.Beside, part)
			report.State = status.Worse(report.State, part.State)
		}
	}
	return report
}

// roleOf returns the role of a connector in a pipeline: receiver or exporter.
func roleOf(connector *config.Component, p config.Pipeline) pipeline.Kind {
	if slices.Contains(p.Receivers, connector) {
		return pipeline.KindReceiver
	}
	return pipeline.KindExporter
}
