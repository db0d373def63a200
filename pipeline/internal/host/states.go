package host

import (
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config"
	"github.com/tracing-backend/tracing/pipeline/status"
)

// queueSuffix is the end of the name under which the queue of an exporter reports its state. A
// queue may outlive its exporter.
const queueSuffix = " queue"

// stateBook records the states of all nodes by name.
type stateBook struct {
	now func() time.Time

	mu    sync.Mutex
	nodes map[string]nodeState
}

type nodeState struct {
	phase    status.State // starting, ok or stopped
	since    time.Time    // of phase
	degraded error        // latest report; nil: healthy
	reported time.Time    // when degraded became nil or not nil
}

func newStateBook(now func() time.Time) *stateBook {
	return &stateBook{now: now, nodes: map[string]nodeState{}}
}

// enter records that a node entered a phase.
func (b *stateBook) enter(name string, phase status.State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.nodes[name]
	s.phase, s.since = phase, b.now()
	if phase == status.Starting {
		s.degraded = nil // report of the node that it replaces
	}
	b.nodes[name] = s
}

// report records the report of a node and returns the previous one.
func (b *stateBook) report(name string, err error) (before error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.nodes[name]
	before = s.degraded
	if (before == nil) != (err == nil) {
		s.reported = b.now()
	}
	s.degraded = err
	b.nodes[name] = s
	return before
}

// component returns the state of a node.
func (b *stateBook) component(n *node) status.Component {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.nodes[n.String()]
	if queue := b.nodes[n.String()+queueSuffix]; s.degraded == nil && queue.degraded != nil {
		s.degraded, s.reported = queue.degraded, queue.reported
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

// remove removes a node and its queue.
func (b *stateBook) remove(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.nodes, name)
	delete(b.nodes, name+queueSuffix)
}

// notReady returns the first reason of a running component for which the process is not ready, with
// the name of the component, or "".
func (b *stateBook) notReady() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(b.nodes)) {
		if s := b.nodes[name]; s.phase != status.Stopped && s.degraded != nil && pipeline.IsNotReady(s.degraded) {
			return name + ": " + s.degraded.Error()
		}
	}
	return ""
}

// Messages about reports of components.
const (
	msgDegraded  = "component is degraded"
	msgRecovered = "component recovered"
)

// reporter returns a function that records the state of a node or queue and logs changes.
func (a *App) reporter(name string, log *zap.Logger) func(error) {
	lines := pipeline.NewRepeatLog(pipeline.Settings{Logger: log, Env: a.env})
	return func(err error) {
		before := a.states.report(name, err)
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
			if n := graph.find(m.Key, p.ID.String()); n != nil { // nil after a reload that failed to build it again
				part = a.states.component(n)
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
