package servicemap

import (
	"cmp"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// graph is the nodes and edges of a map.
type graph struct {
	nodes []*node
	edges []*edge
}

// node is a service, or a peer, which has no spans of its own.
type node struct {
	name       string
	peer       bool
	of         tracestore.MetricPoint // requests
	connection [tracestore.Connections]uint64
	calls      uint64 // to and from the node
	at         int    // index in the response
}

// edge sums up the calls between two nodes.
type edge struct {
	parent, child *node
	calls, errors uint64
	durations     tracestore.Histogram
	connection    [tracestore.Connections]uint64 // calls by type
}

func newGraph(m *measured) *graph {
	g := new(graph)
	nodes := make(map[string]*node)
	at := func(name string) *node {
		n := nodes[name]
		if n == nil {
			n = &node{name: name, peer: true}
			nodes[name] = n
			g.nodes = append(g.nodes, n)
		}
		return n
	}
	for name, point := range m.services {
		n := at(name)
		n.peer, n.of = false, *point
	}
	between := make(map[[2]*node]*edge)
	for i := range m.edges {
		e := &m.edges[i]
		parent, child := at(e.Parent), at(e.Child)
		parent.peer, child.peer = false, child.peer && e.Peer
		key := [2]*node{parent, child}
		if between[key] == nil {
			between[key] = &edge{parent: parent, child: child}
			g.edges = append(g.edges, between[key])
		}
		between[key].add(e)
	}
	g.sort()
	return g
}

// count counts the calls of nodes, and the requests of peers, which are the calls to them.
func (g *graph) count() {
	for _, e := range g.edges {
		e.count()
	}
}

// add adds calls to an edge.
func (e *edge) add(o *tracestore.CallEdge) {
	e.calls += o.Calls
	e.errors += o.Errors
	e.durations.Add(&o.Durations)
	e.connection[o.Connection] += o.Calls
}

// count adds the calls of an edge to its nodes.
func (e *edge) count() {
	e.parent.calls += e.calls
	if e.child != e.parent {
		e.child.calls += e.calls
	}
	if !e.child.peer {
		return
	}
	e.child.of.Calls += e.calls
	e.child.of.Errors += e.errors
	e.child.of.Durations.Add(&e.durations)
	for i, n := range e.connection {
		e.child.connection[i] += n
	}
}

func (g *graph) sort() {
	slices.SortFunc(g.nodes, func(a, b *node) int { return cmp.Compare(a.name, b.name) })
	slices.SortFunc(g.edges, func(a, b *edge) int {
		return cmp.Or(cmp.Compare(a.parent.name, b.parent.name), cmp.Compare(a.child.name, b.child.name))
	})
}

// surround keeps a service and the edges on paths of at most depth calls to or from it.
func (g *graph) surround(service string, depth int) {
	i := slices.IndexFunc(g.nodes, func(n *node) bool { return n.name == service })
	if i < 0 {
		*g = graph{}
		return
	}
	center := g.nodes[i]
	to := g.reach(center, depth, func(e *edge) (from, to *node) { return e.child, e.parent })
	from := g.reach(center, depth, func(e *edge) (from, to *node) { return e.parent, e.child })
	g.edges = slices.DeleteFunc(g.edges, func(e *edge) bool { return !to[e] && !from[e] })
	kept := map[*node]bool{center: true}
	for _, e := range g.edges {
		kept[e.parent], kept[e.child] = true, true
	}
	g.nodes = slices.DeleteFunc(g.nodes, func(n *node) bool { return !kept[n] })
}

// reach returns the edges that are at most depth steps away from a node.
func (g *graph) reach(center *node, depth int, ends func(*edge) (from, to *node)) map[*edge]bool {
	leaving := make(map[*node][]*edge)
	for _, e := range g.edges {
		from, _ := ends(e)
		leaving[from] = append(leaving[from], e)
	}
	found := make(map[*edge]bool)
	seen := map[*node]bool{center: true}
	next := []*node{center}
	for range depth {
		var reached []*node
		for _, n := range next {
			for _, e := range leaving[n] {
				found[e] = true
				if _, to := ends(e); !seen[to] {
					seen[to] = true
					reached = append(reached, to)
				}
			}
		}
		next = reached
	}
	return found
}

// limit keeps the nodes with the most calls, and always the given node. It returns the number of
// removed nodes.
func (g *graph) limit(most int, always string) (omitted int) {
	if omitted = len(g.nodes) - most; omitted <= 0 {
		return 0
	}
	byCalls := slices.Clone(g.nodes)
	rank := func(n *node) int {
		if n.name == always {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(byCalls, func(a, b *node) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.calls+b.of.Calls, a.calls+a.of.Calls))
	})
	gone := make(map[*node]bool)
	for _, n := range byCalls[most:] {
		gone[n] = true
	}
	g.nodes = slices.DeleteFunc(g.nodes, func(n *node) bool { return gone[n] })
	g.edges = slices.DeleteFunc(g.edges, func(e *edge) bool { return gone[e.parent] || gone[e.child] })
	return omitted
}
