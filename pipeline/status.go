package pipeline

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// State is the condition of a component, and of what is made of components.
type State string

// The states, from the best to the worst.
const (
	StateOK       State = "ok"
	StateDegraded State = "degraded" // works in part, or not for the moment; there is a reason
	StateStarting State = "starting"
	StateStopped  State = "stopped"
)

// worse returns the worse of two states.
func worse(a, b State) State {
	order := []State{StateOK, StateDegraded, StateStarting, StateStopped}
	return order[max(slices.Index(order, a), slices.Index(order, b))]
}

// Status is the state of the process, part by part. The state of a whole is that of its worst part.
type Status struct {
	State     State             `json:"status"`
	Pipelines []PipelineStatus  `json:"pipelines"`
	Beside    []ComponentStatus `json:"beside"` // what is in no pipeline

	Configuration ReloadStatus `json:"configuration"`
}

// PipelineStatus is the state of one pipeline.
type PipelineStatus struct {
	Pipeline   string            `json:"pipeline"`
	State      State             `json:"status"`
	Components []ComponentStatus `json:"components"` // in the direction of the spans
}

// ComponentStatus is the state of one instance of a component.
type ComponentStatus struct {
	Component string    `json:"component"`
	Kind      string    `json:"kind"`
	State     State     `json:"status"`
	Reason    string    `json:"reason,omitempty"` // why it is degraded
	Since     time.Time `json:"since"`            // when it came into this state
}

// statusBook keeps the states of all instances, by the names that the graph has for them.
type statusBook struct {
	now func() time.Time

	mu    sync.Mutex
	parts map[string]partStatus
}

type partStatus struct {
	phase    State // starting, ok or stopped
	since    time.Time
	degraded error // what the component reported last; nil is healthy
	reported time.Time
}

func newStatusBook(now func() time.Time) *statusBook {
	return &statusBook{now: now, parts: map[string]partStatus{}}
}

// enter notes that an instance is in a phase of its life from now on.
func (b *statusBook) enter(name string, phase State) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.parts[name]
	p.phase, p.since = phase, b.now()
	if phase == StateStarting {
		p.degraded = nil // what its predecessor said
	}
	b.parts[name] = p
}

// report notes what an instance says of itself, and returns what it said before.
func (b *statusBook) report(name string, err error) (before error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.parts[name]
	before = p.degraded
	if (before == nil) != (err == nil) {
		p.reported = b.now()
	}
	p.degraded = err
	b.parts[name] = p
	return before
}

// of returns the status of an instance.
func (b *statusBook) of(n *node) ComponentStatus {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.parts[n.String()]
	if queue := b.parts[n.String()+ofQueue]; p.degraded == nil && queue.degraded != nil {
		p.degraded, p.reported = queue.degraded, queue.reported
	}
	s := ComponentStatus{Component: n.config.key.id.String(), Kind: n.config.key.kind.String(), State: p.phase, Since: p.since}
	if p.phase == StateOK && p.reported.After(p.since) {
		s.Since = p.reported
	}
	if p.phase == StateOK && p.degraded != nil {
		s.State, s.Reason = StateDegraded, p.degraded.Error()
	}
	return s
}

// ofQueue is what the name of an exporter's queue ends with: it may outlive the exporter, and speaks for itself.
const ofQueue = " queue"

// leave forgets an instance and its queue.
func (b *statusBook) leave(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.parts, name)
	delete(b.parts, name+ofQueue)
}

// reporter returns the Report function of a component: a change of its state is logged once. Once ended is set, what it says is not heard.
func (a *App) reporter(name string, log *zap.Logger, ended *atomic.Bool) func(error) {
	return func(err error) {
		if ended.Load() {
			return
		}
		before := a.status.report(name, err)
		switch {
		case err == nil && before != nil:
			log.Info("component is healthy again")
		case err != nil && (before == nil || before.Error() != err.Error()):
			log.Warn("component is degraded", zap.Error(err))
		}
	}
}

// Status tells the state of every component, and of the configuration.
func (a *App) Status() Status {
	a.mu.Lock()
	config, graph := a.config, a.graph
	s := Status{State: StateOK, Pipelines: []PipelineStatus{}, Beside: []ComponentStatus{}, Configuration: a.reload}
	a.mu.Unlock()
	if s.Configuration.Problem != "" {
		s.State = StateDegraded
	}
	inPipeline := map[componentKey]bool{}
	for _, p := range config.pipelines {
		ps := PipelineStatus{Pipeline: p.id.String(), State: StateOK}
		for _, c := range p.members() {
			inPipeline[c.key] = true
			part := ComponentStatus{Component: c.key.id.String(), Kind: c.key.kind.String(), State: StateStopped}
			if n := graph.find(c.key, p.id.String()); n != nil { // else it could not even be built again
				part = a.status.of(n)
			}
			ps.Components = append(ps.Components, part)
			ps.State = worse(ps.State, part.State)
		}
		s.Pipelines = append(s.Pipelines, ps)
		s.State = worse(s.State, ps.State)
	}
	for _, n := range graph.nodes {
		if !inPipeline[n.config.key] {
			part := a.status.of(n)
			s.Beside = append(s.Beside, part)
			s.State = worse(s.State, part.State)
		}
	}
	return s
}

// members returns the components of a pipeline in the direction of the spans.
func (p pipelineConfig) members() []*componentConfig {
	return slices.Concat(p.receivers, p.processors, p.exporters)
}

// LogLevel is the level of the process's log, which can be changed while it runs.
func (a *App) LogLevel() zap.AtomicLevel { return a.level }
