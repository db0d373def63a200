package host

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config"
	"github.com/tracing-backend/tracing/pipeline/internal/delivery"
)

// graph holds all nodes in start order, each after all nodes that it calls or refers to, and their
// connections.
type graph struct {
	nodes    []*node
	registry *prometheus.Registry
	next     map[*node][]delivery.Way // successors of receivers, processors and connectors
	collects map[*node]bool           // receivers whose spans are stored or discarded in this process
}

// find returns a node of a component, or nil if there is none.
func (g *graph) find(key config.Key) *node {
	i := slices.IndexFunc(g.nodes, func(n *node) bool { return n.config.Key == key })
	if i < 0 {
		return nil
	}
	return g.nodes[i]
}

// member returns the node of a member of a pipeline, or nil if there is none.
func (g *graph) member(p config.Pipeline, m *config.Component) *node {
	i := slices.IndexFunc(g.nodes, func(n *node) bool {
		return n.config.Key == m.Key && (n.pipeline == "" || n.pipeline == p.ID.String()) &&
			(m.Key.Kind != pipeline.KindExporter || n.signal == signalOf(p))
	})
	if i < 0 {
		return nil
	}
	return g.nodes[i]
}

// has reports whether n is in the graph.
func (g *graph) has(n *node) bool { return slices.Contains(g.nodes, n) }

// hasEdge reports whether e belongs to a node of the graph.
func (g *graph) hasEdge(e *delivery.ExporterEdge) bool {
	return slices.ContainsFunc(g.nodes, func(n *node) bool { return n.edge == e })
}

// connect connects a node to its successors and opens its gate. left is closed when no call uses
// its previous successors, or nil if it keeps them.
func (g *graph) connect(n *node, m *delivery.Metrics) (left <-chan struct{}) {
	if n.intake != nil {
		n.intake.SetCollects(g.collects[n])
	}
	if g.connected(n) {
		return nil
	}
	return n.leadTo(g.next[n], m)
}

// connected reports whether a node leads to its successors in the graph.
func (g *graph) connected(n *node) bool {
	return n.gate == nil || !n.gate.IsClosed() && slices.Equal(n.next, g.next[n])
}

// with returns a graph with the nodes of g and, before them, the others.
func (g *graph) with(others []*node) *graph {
	all := *g
	all.nodes = slices.Concat(others, g.nodes)
	return &all
}

// survivors are running nodes and edges that may become part of another graph.
type survivors struct {
	nodes []*node
	edges map[place]*delivery.ExporterEdge
}

// survivors returns the running nodes and edges of the graph.
func (g *graph) survivors(running []*node) *survivors {
	s := &survivors{edges: map[place]*delivery.ExporterEdge{}}
	for _, n := range g.nodes {
		if slices.Contains(running, n) && !n.ended.Load() {
			s.nodes = append(s.nodes, n)
		}
		if n.edge != nil && n.edge.Started() {
			s.edges[n.place()] = n.edge
		}
	}
	return s
}

// node returns the running node that can be used instead of n, or nil. Its configuration, and the
// nodes that it refers to, must be equal.
func (s *survivors) node(n *node, nodes map[*config.Component]*node) *node {
	i := slices.IndexFunc(s.nodes, func(old *node) bool {
		return old.place() == n.place() && config.Equal(old.config.Value, n.config.Value)
	})
	if i < 0 {
		return nil
	}
	for _, r := range n.config.References {
		if !slices.Contains(s.nodes, nodes[r.Target]) {
			return nil
		}
	}
	return s.nodes[i]
}
