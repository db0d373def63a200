package pipeline

import (
	"fmt"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// node is one component instance. It may be part of several graphs, one after the other.
type node struct {
	config   *componentConfig // that it was built with
	pipeline string           // for a processor, which has one instance per listing
	value    any
	keep     Keep // of an exporter: where spans are once it has taken them
	metrics  *registration
	consumer Consumer      // what others call: the component behind its edge
	intake   *receiverEdge // of a receiver
	out      *link         // of receivers and processors: where their spans go
	next     []Consumer    // what out leads to
	edge     *exporterEdge // of an exporter; a node that takes another one's place may have its edge
	ended    atomic.Bool   // it is not part of the running graph any more, and what it reports is of no interest
}

// place is what two nodes have in common when one can take the other's place.
type place struct {
	key      componentKey
	pipeline string
}

func (n *node) place() place { return place{n.config.key, n.pipeline} }

func (n *node) String() string {
	if n.pipeline != "" {
		return n.config.key.String() + " in " + n.pipeline
	}
	return n.config.key.String()
}

// dir returns the folder of the instance below service.data_dir, its own: whatever a name holds is escaped, and a type has no `-`.
// Exporters, most of those that need a folder, are at the top.
func (n *node) dir() string {
	key := n.config.key
	name := key.id.Type
	if key.id.Name != "" {
		name += "-" + url.PathEscape(key.id.Name)
	}
	if key.kind == KindExporter {
		return name
	}
	return filepath.Join(key.kind.section(), name, url.PathEscape(n.pipeline))
}

// graph is all instances in start order, each behind everything that it calls or refers to, and what goes where.
type graph struct {
	nodes    []*node
	registry *prometheus.Registry
	next     map[*node][]Consumer // where the spans of receivers and processors go
	collects map[*node]bool       // receivers whose spans end in this process
}

// find returns the instance of a component in a pipeline: its only one, or, of a processor, the pipeline's own; nil if there is none.
func (g *graph) find(key componentKey, pipeline string) *node {
	i := slices.IndexFunc(g.nodes, func(n *node) bool {
		return n.config.key == key && (n.pipeline == "" || n.pipeline == pipeline)
	})
	if i < 0 {
		return nil
	}
	return g.nodes[i]
}

// has reports whether n is in the graph.
func (g *graph) has(n *node) bool { return slices.Contains(g.nodes, n) }

// hasEdge reports whether the edge belongs to a node of the graph.
func (g *graph) hasEdge(e *exporterEdge) bool {
	return slices.ContainsFunc(g.nodes, func(n *node) bool { return n.edge == e })
}

// connect makes the spans of a node go where the graph says, and lets them flow.
func (g *graph) connect(n *node, log *zap.Logger) {
	if n.intake != nil {
		n.intake.collects.Store(g.collects[n])
	}
	if !g.leads(n) {
		n.next = g.next[n]
		n.out.open(newFanOut(n.next, log))
	}
}

// leads reports whether the spans of a node go where the graph says.
func (g *graph) leads(n *node) bool {
	return n.out == nil || !n.out.isShut() && slices.Equal(n.next, g.next[n])
}

// survivors returns what runs of the graph.
func (g *graph) survivors(running []*node) *survivors {
	s := &survivors{edges: map[componentKey]*exporterEdge{}}
	for _, n := range g.nodes {
		if slices.Contains(running, n) {
			s.nodes = append(s.nodes, n)
		}
		if n.edge != nil && n.edge.started {
			s.edges[n.config.key] = n.edge
		}
	}
	return s
}

// graphBuilder makes the graph of a Config. Receivers, exporters and extensions have one instance each, processors one per listing.
type graphBuilder struct {
	app    *App
	config *Config
	alive  *survivors
	nodes  map[*componentConfig]*node
	graph  *graph
}

// survivors are what runs already and may become part of another graph.
type survivors struct {
	nodes []*node
	edges map[componentKey]*exporterEdge
}

// node returns the running instance that is what n is to be, nil if there is none: its configuration is equal, and all that it refers to
// stays.
func (s *survivors) node(n *node, nodes map[*componentConfig]*node) *node {
	i := slices.IndexFunc(s.nodes, func(old *node) bool { return old.place() == n.place() })
	if i < 0 {
		return nil
	}
	old := s.nodes[i]
	if !sameConfig(reflect.ValueOf(old.config.value).Elem(), reflect.ValueOf(n.config.value).Elem()) {
		return nil
	}
	for _, r := range n.config.refs {
		if !slices.Contains(s.nodes, nodes[r.target]) {
			return nil
		}
	}
	return old
}

// buildGraph builds the components of c, but for those of alive that can stay.
func buildGraph(a *App, c *Config, alive *survivors) (*graph, error) {
	g := &graph{registry: prometheus.NewRegistry(), next: map[*node][]Consumer{}, collects: map[*node]bool{}}
	b := &graphBuilder{app: a, config: c, alive: alive, nodes: map[*componentConfig]*node{}, graph: g}
	if err := b.build(); err != nil {
		for _, n := range g.nodes {
			n.metrics.quit(g.registry)
		}
		a.tel.own.quit(g.registry)
		return nil, err
	}
	return g, nil
}

func (b *graphBuilder) build() error {
	if err := b.app.tel.own.join(b.graph.registry); err != nil {
		return fmt.Errorf("BUG: metrics of the framework: %w", err)
	}
	used := b.config.inForce()
	var observers, others []*componentConfig
	for _, c := range b.config.sorted() {
		if !used[c] || c.key.kind == KindReceiver || c.key.kind == KindProcessor {
			continue
		}
		if c.factory.component.Implements(observerType) {
			observers = append(observers, c)
		} else {
			others = append(others, c)
		}
	}
	for _, c := range slices.Concat(observers, others) {
		if err := b.shared(c, nil); err != nil {
			return err
		}
	}
	heads := map[*componentConfig][]Consumer{}
	for _, p := range b.config.pipelines {
		head, err := b.pipeline(p)
		if err != nil {
			return err
		}
		for _, r := range p.receivers {
			heads[r] = append(heads[r], head...)
		}
	}
	for _, c := range b.config.sorted() {
		if h := heads[c]; h != nil {
			if err := b.shared(c, h); err != nil {
				return err
			}
		}
	}
	return nil
}

// shared sees that the one instance of a component is in the graph, behind everything that it refers to.
func (b *graphBuilder) shared(c *componentConfig, next []Consumer) error {
	if b.nodes[c] != nil {
		return nil
	}
	n, err := b.instance(&node{config: c}, next)
	b.nodes[c] = n
	return err
}

// pipeline builds the processors of a pipeline, last first, and returns what its receivers call.
func (b *graphBuilder) pipeline(p pipelineConfig) ([]Consumer, error) {
	var next []Consumer
	for _, e := range p.exporters {
		next = append(next, b.nodes[e].consumer)
	}
	for _, c := range slices.Backward(p.processors) {
		n, err := b.instance(&node{config: c, pipeline: p.id.String()}, next)
		if err != nil {
			return nil, err
		}
		next = []Consumer{n.consumer}
	}
	return next, nil
}

// instance adds a component to the graph: a running one that can stay, else n, which it builds.
func (b *graphBuilder) instance(n *node, next []Consumer) (*node, error) {
	config := n.config
	for _, r := range config.refs {
		if err := b.shared(r.target, nil); err != nil {
			return nil, err
		}
		r.ref.bind(b.nodes[r.target].value)
	}
	if old := b.alive.node(n, b.nodes); old != nil {
		n = old
		if err := n.metrics.join(b.graph.registry); err != nil {
			return nil, fmt.Errorf("building %s: %w", n, err)
		}
	} else if err := b.fill(n); err != nil {
		return nil, fmt.Errorf("building %s: %w", n, err)
	}
	b.graph.nodes = append(b.graph.nodes, n)
	if n.out != nil {
		b.graph.next[n] = next
	}
	if n.intake != nil {
		b.graph.collects[n] = b.collects(config)
	}
	return n, nil
}

// fill builds the component of a node, and what the framework puts around it.
func (b *graphBuilder) fill(n *node) error {
	n.metrics = &registration{}
	if err := n.metrics.join(b.graph.registry); err != nil {
		return err
	}
	kind, set := n.config.key.kind, b.settings(n)
	var next Consumer
	if kind == KindReceiver || kind == KindProcessor {
		n.out = &link{}
		next = n.out
	}
	if kind == KindReceiver {
		n.intake = &receiverEdge{next: n.out, tel: b.app.tel, log: set.Logger,
			count: newOutcomes(b.app.tel, n.config.key, outcomeReceived, outcomeAccepted)}
		next = n.intake
	}
	value, err := buildSafely(n.config, set, next)
	if err != nil {
		return err
	}
	n.value = value
	n.consumer, _ = value.(Consumer)
	switch kind {
	case KindProcessor:
		n.consumer = &guarded{n.consumer, set.Logger}
	case KindExporter:
		b.putEdge(n, set)
	}
	return nil
}

// putEdge puts what stands in front of an exporter there: the edge of the instance whose place it takes, so that its queue goes on, or a new one.
func (b *graphBuilder) putEdge(n *node, set Settings) {
	n.keep = keepOf(n.value)
	queue, queued := n.config.queue()
	if queued {
		n.keep = queue.keep()
	}
	if e := b.alive.edges[n.config.key]; e != nil && e.config == queue {
		n.edge = e
	} else {
		n.edge = newExporterEdge(b.app, n, set, queue)
	}
	n.consumer = n.edge
}

// queue returns the queue in front of an exporter, and whether it has one.
func (c *componentConfig) queue() (QueueConfig, bool) {
	if d, ok := c.value.(deliverable); ok {
		if q, on := d.delivery().Queue.Get(); on && q.Enabled {
			return q.whole(), true
		}
	}
	return QueueConfig{}, false
}

// collects reports whether an exporter behind a receiver does anything else with spans than to pass them on to a next hop.
func (b *graphBuilder) collects(receiver *componentConfig) bool {
	for _, p := range b.config.pipelines {
		if !slices.Contains(p.receivers, receiver) {
			continue
		}
		for _, e := range p.exporters {
			if keep := b.nodes[e].keep; keep != KeepSent && keep != KeepQueued && keep != KeepOnDisk {
				return true
			}
		}
	}
	return false
}

func buildSafely(c *componentConfig, set Settings, next Consumer) (value any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("BUG: build panicked: %v", p)
		}
	}()
	return c.factory.build(set, c.value, next)
}

func keepOf(exporter any) Keep {
	if k, ok := exporter.(Keeper); ok {
		return k.Keeps()
	}
	return KeepSent
}

func (b *graphBuilder) settings(n *node) Settings {
	key := n.config.key
	labels := prometheus.Labels{"component": key.id.String(), "kind": key.kind.String()}
	fields := []zap.Field{zap.String("component", key.id.String()), zap.String("kind", key.kind.String())}
	if n.pipeline != "" {
		labels["pipeline"] = n.pipeline
		fields = append(fields, zap.String("pipeline", n.pipeline))
	}
	log := b.app.log.With(fields...)
	return Settings{
		ID:      key.id,
		Logger:  log,
		Metrics: prometheus.WrapRegistererWith(labels, n.metrics),
		Dir:     filepath.Join(b.config.service.DataDir, n.dir()),
		Env:     b.app.env,
		Budget:  b.app.budget,
		Report:  b.app.reporter(n.String(), log, &n.ended),
		Process: b.app,
	}
}
