package host

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config"
	"github.com/tracing-backend/tracing/pipeline/internal/delivery"
)

// graph holds all nodes in start order, each after all nodes that it calls or refers to, and their
// connections.
type graph struct {
	nodes    []*node
	registry *prometheus.Registry
	next     map[*node][]pipeline.Consumer // successors of receivers and processors
	collects map[*node]bool                // receivers whose spans are stored or discarded in this process
}

// find returns the node of a component: its only one or, for a processor, the one of the pipeline.
// It returns nil if there is none.
func (g *graph) find(key config.Key, pipeline string) *node {
	i := slices.IndexFunc(g.nodes, func(n *node) bool {
		return n.config.Key == key && (n.pipeline == "" || n.pipeline == pipeline)
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

// connect connects a node to its successors and opens its gate.
func (g *graph) connect(n *node, log *zap.Logger) {
	if n.intake != nil {
		n.intake.SetCollects(g.collects[n])
	}
	if !g.connected(n) {
		n.next = g.next[n]
		n.gate.Open(delivery.NewFanOut(n.next, log))
	}
}

// connected reports whether a node leads to its successors in the graph.
func (g *graph) connected(n *node) bool {
	return n.gate == nil || !n.gate.IsClosed() && slices.Equal(n.next, g.next[n])
}

// survivors are nodes and edges that run and may become part of another graph.
type survivors struct {
	nodes []*node
	edges map[config.Key]*delivery.ExporterEdge
}

// survivors returns the nodes and edges of the graph that run.
func (g *graph) survivors(running []*node) *survivors {
	s := &survivors{edges: map[config.Key]*delivery.ExporterEdge{}}
	for _, n := range g.nodes {
		if slices.Contains(running, n) {
			s.nodes = append(s.nodes, n)
		}
		if n.edge != nil && n.edge.Started() {
			s.edges[n.config.Key] = n.edge
		}
	}
	return s
}

// node returns the running node that can be used instead of n, or nil: its configuration is equal,
// and so are the nodes that it refers to.
func (s *survivors) node(n *node, nodes map[*config.Component]*node) *node {
	i := slices.IndexFunc(s.nodes, func(old *node) bool { return old.place() == n.place() })
	if i < 0 {
		return nil
	}
	old := s.nodes[i]
	if !config.Equal(old.config.Value, n.config.Value) {
		return nil
	}
	for _, r := range n.config.References {
		if !slices.Contains(s.nodes, nodes[r.Target]) {
			return nil
		}
	}
	return old
}
