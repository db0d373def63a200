package host

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config"
	"github.com/tracing-backend/tracing/pipeline/internal/delivery"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// graphBuilder builds the graph of a configuration. Receivers, connectors and extensions have one
// node each, processors one per pipeline, and exporters one per signal.
type graphBuilder struct {
	app       *App
	config    *config.Config
	survivors *survivors
	nodes     map[*config.Component]*node    // all but processors and exporters of log records
	logNodes  map[*config.Component]*node    // exporters of log records
	heads     map[pipeline.ID][]delivery.Way // by pipeline: what its receivers call
	graph     *graph
}

// buildGraph builds the components of c, except survivors that can be reused.
func buildGraph(a *App, c *config.Config, s *survivors) (*graph, error) {
	g := &graph{registry: prometheus.NewRegistry(), next: map[*node][]delivery.Way{}, collects: map[*node]bool{}}
	b := &graphBuilder{app: a, config: c, survivors: s, nodes: map[*config.Component]*node{}, logNodes: map[*config.Component]*node{},
		heads: map[pipeline.ID][]delivery.Way{}, graph: g}
	if err := b.build(); err != nil {
		for _, n := range g.nodes {
			n.collectors.leave(g.registry)
		}
		a.metrics.collectors.leave(g.registry)
		return nil, err
	}
	return g, nil
}

func (b *graphBuilder) build() error {
	if err := b.app.metrics.collectors.join(b.graph.registry); err != nil {
		return fmt.Errorf("BUG: metrics of the framework: %w", err)
	}
	used := b.config.Used()
	var observers, others []*config.Component
	for _, c := range b.config.Sorted() {
		switch {
		case !used[c] || c.Passes() || b.config.LogsOnly(c):
		case c.IsObserver():
			observers = append(observers, c)
		default:
			others = append(others, c)
		}
	}
	for _, c := range slices.Concat(observers, others) {
		if err := b.addShared(c, nil); err != nil {
			return err
		}
	}
	for _, p := range b.config.Pipelines {
		if err := b.addPipeline(p); err != nil {
			return err
		}
	}
	for _, c := range b.config.Sorted() {
		if used[c] && c.Key.Kind == pipeline.KindReceiver {
			if err := b.addSource(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// addSource adds a receiver or connector, after the pipelines that it feeds.
func (b *graphBuilder) addSource(c *config.Component) error {
	if b.nodes[c] != nil {
		return nil
	}
	var next []delivery.Way
	for _, p := range b.config.FedBy(c) {
		if err := b.addPipeline(p); err != nil {
			return err
		}
		next = append(next, b.heads[p.ID]...)
	}
	return b.addShared(c, next)
}

// addPipeline adds a pipeline's connectors, then its processors from last to first, unless the
// graph has them.
func (b *graphBuilder) addPipeline(p config.Pipeline) error {
	if b.heads[p.ID] != nil {
		return nil
	}
	var next []delivery.Way
	for _, e := range p.Exporters {
		if e.Key.Kind == pipeline.KindConnector {
			if err := b.addSource(e); err != nil {
				return err
			}
		}
		to := b.nodes[e]
		if signalOf(p) == otlpdata.SignalLogs {
			var err error
			if to, err = b.addLogs(e); err != nil {
				return err
			}
		}
		next = append(next, delivery.Way{Pipeline: p.ID, Signal: signalOf(p), To: to.consumer})
	}
	for _, c := range slices.Backward(p.Processors) {
		n, err := b.add(&node{config: c, pipeline: p.ID.String(), signal: signalOf(p)}, next)
		if err != nil {
			return err
		}
		next = []delivery.Way{{Pipeline: p.ID, Signal: signalOf(p), To: n.consumer}}
	}
	b.heads[p.ID] = next
	return nil
}

// addLogs adds the node of an exporter of log records, unless the graph has it.
func (b *graphBuilder) addLogs(e *config.Component) (*node, error) {
	if n := b.logNodes[e]; n != nil {
		return n, nil
	}
	n, err := b.add(&node{config: e, signal: otlpdata.SignalLogs}, nil)
	b.logNodes[e] = n
	return n, err
}

// addShared adds the single node of a component, after all nodes that it refers to, unless the
// graph has it.
func (b *graphBuilder) addShared(c *config.Component, next []delivery.Way) error {
	if b.nodes[c] != nil {
		return nil
	}
	n, err := b.add(&node{config: c}, next)
	b.nodes[c] = n
	return err
}

// add adds a node to the graph: a running node that can be reused, or n, which it builds.
func (b *graphBuilder) add(n *node, next []delivery.Way) (*node, error) {
	c := n.config
	for _, r := range c.References {
		if err := b.addShared(r.Target, nil); err != nil {
			return nil, err
		}
		r.Bind(b.nodes[r.Target].component)
		n.refs = append(n.refs, b.nodes[r.Target])
	}
	if old := b.survivors.node(n, b.nodes); old != nil {
		n = old
		if err := n.collectors.join(b.graph.registry); err != nil {
			return nil, fmt.Errorf("building %s: %w", n, err)
		}
	} else if err := b.buildNode(n); err != nil {
		return nil, fmt.Errorf("building %s: %w", n, err)
	}
	b.graph.nodes = append(b.graph.nodes, n)
	if n.gate != nil {
		b.graph.next[n] = next
	}
	if n.intake != nil {
		b.graph.collects[n] = b.collects(c)
	}
	return n, nil
}

// buildNode builds the component of a node, and its edge and gate.
func (b *graphBuilder) buildNode(n *node) error {
	n.collectors = &collectorSet{}
	if err := n.collectors.join(b.graph.registry); err != nil {
		return err
	}
	kind, set := n.config.Key.Kind, b.settings(n)
	var next pipeline.Consumer
	if n.config.Passes() {
		n.gate = &delivery.Gate{}
		next = n.gate
	}
	if kind == pipeline.KindConnector {
		next = delivery.ConnectorBranches{Gate: n.gate}
	}
	if kind == pipeline.KindReceiver {
		n.intake = delivery.NewReceiverEdge(n.gate, b.app.metrics.delivery, n.deliveryName(), set,
			func() delivery.WaitLimit { return n.maxWait(b.app) })
		next = n.intake
	}
	if kind == pipeline.KindProcessor && n.config.Holds() {
		n.held = delivery.NewHolderEdge(n.gate, delivery.HolderOptions{Component: n.deliveryName(), Settings: set,
			Metrics: b.app.metrics.delivery, RetryLimit: b.app.heldRetry, DeadLetters: b.app.letters.Load})
		set.Dropped, set.Made = n.held.Dropped, n.held.Made
		next = n.held
	}
	if err := n.build(set, next); err != nil {
		return err
	}
	n.consumer, _ = n.component.(pipeline.Consumer)
	switch kind {
	case pipeline.KindProcessor, pipeline.KindConnector:
		n.consumer = delivery.NewProcessorEdge(n.consumer, b.app.metrics.delivery, n.deliveryName(), set)
	case pipeline.KindExporter:
		b.addEdge(n, set)
	}
	return nil
}

// addEdge puts an edge before an exporter: the edge of the exporter that it replaces, so that the
// queue is kept, or a new one.
func (b *graphBuilder) addEdge(n *node, set pipeline.Settings) {
	n.durability = durabilityOf(n.component)
	d := delivery.ConfigOf(n.config.Value)
	queue, queued := delivery.QueueOf(d)
	if queued {
		n.durability = delivery.QueueDurability(queue)
	}
	if e := b.survivors.edges[n.place()]; e != nil && e.QueueConfig() == queue {
		n.edge = e
	} else {
		n.edge = delivery.NewExporterEdge(delivery.ExporterOptions{
			Component: n.deliveryName(), Settings: set, Metrics: b.app.metrics.delivery, Queue: queue, Retries: d != nil,
			DeadLetters: b.app.letters.Load,
			ReportQueue: b.app.reporter(set.Logger, func(err error) error { return b.app.states.reportQueue(n.String(), err) }),
		})
		n.lead()
	}
	n.consumer = n.edge
}

// collects reports whether an exporter behind a receiver keeps or discards spans.
func (b *graphBuilder) collects(receiver *config.Component) bool {
	return slices.ContainsFunc(b.config.FedBy(receiver), func(p config.Pipeline) bool {
		ends := func(e *config.Component) bool { return !b.nodes[e].forwardsOnly() }
		return !p.Logs() && slices.ContainsFunc(b.config.ExportersBehind(p), ends)
	})
}

// build builds the component.
func (n *node) build(set pipeline.Settings, next pipeline.Consumer) (err error) {
	n.log = set.Logger
	defer n.recoverCall("build", &err)
	n.component, err = n.config.Factory.Build(set, n.config.Value, next)
	return err
}

func durabilityOf(exporter any) pipeline.Durability {
	if r, ok := exporter.(pipeline.DurabilityReporter); ok {
		return r.Durability()
	}
	return pipeline.DurabilitySent
}

func (b *graphBuilder) settings(n *node) pipeline.Settings {
	key := n.config.Key
	name := key.ID.String()
	if key.Kind == pipeline.KindExporter {
		name = n.deliveryName().Name()
	}
	labels := prometheus.Labels{"component": name, "kind": key.Kind.String()}
	fields := []zap.Field{zap.String("component", name), zap.String("kind", key.Kind.String())}
	if n.pipeline != "" {
		labels["pipeline"] = n.pipeline
		fields = append(fields, zap.String("pipeline", n.pipeline))
	}
	log := b.app.log.With(fields...)
	report := b.app.reporter(log, func(err error) error { return b.app.states.report(n, err) })
	set := pipeline.Settings{
		ID:          key.ID,
		Signal:      n.signal,
		Logger:      log,
		Metrics:     prometheus.WrapRegistererWith(labels, n.collectors),
		Dir:         filepath.Join(b.config.Service.DataDir, n.dir()),
		Env:         b.app.sockets.env(n, b.app.env),
		Budget:      b.app.budget,
		QueryMemory: b.app.queries,
		Connections: b.app.connections.take,
		Report: func(err error) {
			if !n.ended.Load() {
				report(err)
			}
		},
		Process: b.app,
		Tracer:  &b.app.tracer,
		Write:   func(exporter pipeline.Consumer) pipeline.Consumer { return b.writer(n, exporter, log) },
	}
	if n.config.IsObserver() {
		set.Tracer = nil // health checks and scrapes of metrics are not traced
	}
	if key.Kind == pipeline.KindProcessor {
		set.HeldMemory, set.HeldTenants = b.app.held, b.config.Service.Limits.HeldTenants
	}
	if key.Kind == pipeline.KindReceiver {
		set.Refused = b.app.metrics.delivery.Received(n.deliveryName()).RefuseRequests
	}
	return set
}

// writer returns the Consumer through which an extension writes to an exporter that it refers to.
// It has the same edges as between a receiver and an exporter.
func (b *graphBuilder) writer(n *node, exporter pipeline.Consumer, log *zap.Logger) pipeline.Consumer {
	for _, r := range n.config.References {
		if to := b.nodes[r.Target]; to != nil && to.component == any(exporter) && to.consumer != nil {
			edge := delivery.NewReceiverEdge(to.consumer, b.app.metrics.delivery, n.deliveryName(),
				pipeline.Settings{Logger: log, Tracer: &b.app.tracer}, b.app.maxWait)
			edge.SetCollects(!to.forwardsOnly())
			n.writes = append(n.writes, to.config.Key.ID.String())
			return edge
		}
	}
	return exporter
}
