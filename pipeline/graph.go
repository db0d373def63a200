package pipeline

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
)

// node is one component instance of a running graph.
type node struct {
	config   *componentConfig
	pipeline string // for a processor, which has one instance per listing
	value    any
	consumer Consumer // what others call: the component behind its edge
	edge     *exporterEdge
}

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

// graph is all instances in start order: each behind everything that it calls or refers to.
type graph struct{ nodes []*node }

// graphBuilder makes the graph of a Config. Receivers, exporters and extensions have one instance each, processors one per listing.
type graphBuilder struct {
	app    *App
	config *Config
	nodes  map[*componentConfig]*node
	graph  *graph
}

func buildGraph(a *App, c *Config) (*graph, error) {
	b := &graphBuilder{app: a, config: c, nodes: map[*componentConfig]*node{}, graph: &graph{}}
	if err := b.build(); err != nil {
		return nil, err
	}
	return b.graph, nil
}

func (b *graphBuilder) build() error {
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
		if _, err := b.shared(c, nil); err != nil {
			return err
		}
	}
	heads := map[*componentConfig][]*node{}
	for _, p := range b.config.pipelines {
		head, err := b.pipeline(p)
		if err != nil {
			return err
		}
		for _, r := range p.receivers {
			heads[r] = append(heads[r], head)
		}
	}
	for _, c := range b.config.sorted() {
		if h := heads[c]; h != nil {
			if _, err := b.shared(c, h); err != nil {
				return err
			}
		}
	}
	return nil
}

// shared returns the one instance of a component, built after everything it refers to.
func (b *graphBuilder) shared(c *componentConfig, next []*node) (*node, error) {
	if n, ok := b.nodes[c]; ok {
		return n, nil
	}
	n := &node{config: c}
	b.nodes[c] = n
	if err := b.instance(n, next); err != nil {
		return nil, err
	}
	return n, nil
}

// pipeline builds the processors of a pipeline, last first, and returns what its receivers call.
func (b *graphBuilder) pipeline(p pipelineConfig) (*node, error) {
	tail := &node{config: &componentConfig{}}
	var branches []Consumer
	for _, e := range p.exporters {
		branches = append(branches, b.nodes[e].consumer)
	}
	tail.consumer = newFanOut(branches, b.app.log)
	next := tail
	for _, c := range slices.Backward(p.processors) {
		n := &node{config: c, pipeline: p.id.String()}
		if err := b.instance(n, []*node{next}); err != nil {
			return nil, err
		}
		next = n
	}
	return next, nil
}

// instance binds references, builds the component and adds it to the graph.
func (b *graphBuilder) instance(n *node, next []*node) error {
	for _, r := range n.config.refs {
		target, err := b.shared(r.target, nil)
		if err != nil {
			return err
		}
		r.ref.bind(target.value)
	}
	var consumers []Consumer
	for _, m := range next {
		consumers = append(consumers, m.consumer)
	}
	var down Consumer
	if len(consumers) > 0 {
		down = newFanOut(consumers, b.app.log)
	}
	set := b.settings(n)
	if n.config.key.kind == KindReceiver {
		down = &receiverEdge{next: down, tel: b.app.tel, log: set.Logger, collects: b.collects(n.config),
			count: newOutcomes(b.app.tel, n.config.key, outcomeReceived, outcomeAccepted)}
	}
	value, err := buildSafely(n.config, set, down)
	if err != nil {
		return fmt.Errorf("building %s: %w", n, err)
	}
	n.value = value
	n.consumer, _ = value.(Consumer)
	if n.config.key.kind == KindProcessor {
		n.consumer = &guarded{n.consumer, set.Logger}
	}
	if n.config.key.kind == KindExporter {
		n.edge = b.exporterEdge(n, value.(Consumer), set)
		n.consumer = n.edge
	}
	b.graph.nodes = append(b.graph.nodes, n)
	return nil
}

// collects reports whether an exporter behind a receiver does anything else with spans than to pass them on to a next hop.
func (b *graphBuilder) collects(receiver *componentConfig) bool {
	for _, p := range b.config.pipelines {
		if !slices.Contains(p.receivers, receiver) {
			continue
		}
		for _, e := range p.exporters {
			if keep := b.nodes[e].edge.keep; keep != KeepSent && keep != KeepQueued && keep != KeepOnDisk {
				return true
			}
		}
	}
	return false
}

// exporterEdge puts together what stands in front of an exporter.
func (b *graphBuilder) exporterEdge(n *node, exporter Consumer, set Settings) *exporterEdge {
	e := &exporterEdge{next: exporter, tel: b.app.tel, log: set.Logger, keep: keepOf(exporter), now: set.Env.Now, dead: b.app.dead,
		count: newOutcomes(b.app.tel, n.config.key, outcomeIn, outcomeSent)}
	c, ok := n.config.value.(deliverable)
	if !ok {
		return e
	}
	d := c.delivery()
	retries := b.app.tel.retries.WithLabelValues(n.config.key.id.String())
	s := &sender{next: exporter, timeout: d.Timeout.Std(), retry: d.Retry, env: set.Env, retried: retries.Inc}
	e.next = s
	if q, on := d.Queue.Get(); on && q.Enabled {
		e.setQueue(q.whole(), set)
		s.stopping = e.stopping
		b.app.tel.registerQueue(n.config.key, e.queue, set.Env.Now)
	}
	return e
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
		Metrics: prometheus.WrapRegistererWith(labels, b.app.tel.registry),
		Dir:     filepath.Join(b.config.service.DataDir, n.dir()),
		Env:     b.app.env,
		Budget:  b.app.budget,
		Report:  b.app.reporter(n.String(), log),
		Process: b.app,
	}
}
