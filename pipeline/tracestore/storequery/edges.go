package storequery

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// EdgePeerKeys returns the keys of the span attributes that name the peer of an edge, the most
// specific one first: [PeerKeys] and, for spans of the kind client, keys that name a host.
func EdgePeerKeys(kind int32) []string {
	keys := PeerKeys()
	if kind == otlpdata.KindClient {
		return append(keys[:], "server.address", "net.peer.name")
	}
	return keys[:]
}

// EdgePeerOf is like [PeerOf] with the keys of [EdgePeerKeys].
func EdgePeerOf(s *otlpdata.Span) string {
	if isServer(s.Kind) {
		return ""
	}
	return peerOf(s, EdgePeerKeys(s.Kind))
}

// EdgeSpanOf is like [CallSpanOf] for a span whose edges are measured.
func EdgeSpanOf(s tracestore.Span) CallSpan {
	c := CallSpanOf(s)
	c.Peer, c.Connection = EdgePeerOf(s.Span), tracestore.ConnectionOf(s.Span)
	return c
}

// EdgeCounter measures calls. Not safe for concurrent use.
type EdgeCounter struct {
	query      *tracestore.EdgeQuery
	index      map[callEdgeName]int
	edges      []tracestore.CallEdge
	peers      int // number of edges to peers
	incomplete bool
}

type callEdgeName struct {
	parent, child string
	peer          bool
	connection    tracestore.Connection
}

// NewEdgeCounter returns a counter for the calls that a query selects. It ignores the times of the
// query.
func NewEdgeCounter(q *tracestore.EdgeQuery) *EdgeCounter {
	return &EdgeCounter{query: q, index: make(map[callEdgeName]int)}
}

// AddCall adds a call from a service to a service, unless it is an inner call.
func (c *EdgeCounter) AddCall(parent, child *CallSpan) {
	if tracestore.IsInnerCall(parent.Service, child.Service, child.Kind) {
		return
	}
	connection := tracestore.ConnectionOfCall(parent.Connection, child.Connection)
	if e := c.edge(callEdgeName{parent.Service, child.Service, false, connection}); e != nil {
		addCall(e, child)
	}
}

// AddPeer adds a call to the peer that s names. It does not retain strings of s.
func (c *EdgeCounter) AddPeer(s *CallSpan) {
	if e := c.edge(callEdgeName{s.Service, s.Peer, true, s.Connection}); e != nil {
		addCall(e, s)
	}
}

func addCall(e *tracestore.CallEdge, s *CallSpan) {
	e.Calls++
	if s.Failed {
		e.Errors++
	}
	e.Durations.Observe(s.Duration)
}

// AddEdge adds the calls, errors and durations of e. It does not retain anything of e.
func (c *EdgeCounter) AddEdge(e *tracestore.CallEdge) {
	sum := c.edge(callEdgeName{e.Parent, e.Child, e.Peer, e.Connection})
	if sum == nil {
		return
	}
	sum.Calls += e.Calls
	sum.Errors += e.Errors
	sum.Durations.Add(&e.Durations)
}

// edge returns the edge to add a call to, or nil if the query does not select it or a limit was
// reached.
func (c *EdgeCounter) edge(name callEdgeName) *tracestore.CallEdge {
	if !c.query.Selects(name.parent, name.child) {
		return nil
	}
	i, ok := c.index[name]
	if !ok {
		if name.peer {
			if c.peers >= MaxPeerEdges {
				c.incomplete = true
				return nil
			}
			c.peers++
		}
		name.parent, name.child = strings.Clone(name.parent), strings.Clone(name.child)
		i = len(c.edges)
		c.edges = append(c.edges, tracestore.CallEdge{Parent: name.parent, Child: name.child, Peer: name.peer, Connection: name.connection})
		c.index[name] = i
	}
	return &c.edges[i]
}

// MarkIncomplete records that a call to a peer was not counted because of a limit.
func (c *EdgeCounter) MarkIncomplete() { c.incomplete = true }

// Graph returns the counts. It is not complete if calls to peers were not counted.
func (c *EdgeCounter) Graph() tracestore.EdgeGraph {
	edges := slices.Clone(c.edges)
	slices.SortFunc(edges, compareCallEdges)
	g := tracestore.EdgeGraph{Edges: edges}
	if c.incomplete {
		g.Reasons = peersOmitted
	}
	return g
}

func compareCallEdges(a, b tracestore.CallEdge) int {
	peer := 0
	switch {
	case b.Peer && !a.Peer:
		peer = -1
	case a.Peer && !b.Peer:
		peer = 1
	}
	return cmp.Or(cmp.Compare(a.Parent, b.Parent), cmp.Compare(a.Child, b.Child), peer, cmp.Compare(a.Connection, b.Connection))
}

// CountEdges measures the calls among the spans of one tenant in batches; duplicates count once. It
// is the reference implementation of [tracestore.Edges]. An error means that a batch cannot be
// read.
func CountEdges(q tracestore.EdgeQuery, batches ...*otlpdata.Batch) (tracestore.EdgeGraph, error) {
	c := NewEdgeCounter(&q)
	first, last, ok := tracestore.Query{From: q.From, To: q.To}.Window()
	if !ok {
		return c.Graph(), nil
	}
	traces, err := callSpans(batches, EdgeSpanOf)
	if err != nil {
		return tracestore.EdgeGraph{}, fmt.Errorf("measuring calls: %w", err)
	}
	within := func(s *CallSpan) bool { return s.Start >= first && s.Start <= last }
	var finder EdgeFinder
	for _, spans := range traces {
		finder.Count(spans, within, c)
	}
	return c.Graph(), nil
}

// EdgeFinder finds the calls among the spans of a trace. The zero value is ready to use. It reuses
// its memory. Not safe for concurrent use.
type EdgeFinder struct {
	parents ParentFinder
	peers   PeerCallFinder
}

// Count adds to c the calls of a trace whose spans are within the window. It sorts the spans.
func (f *EdgeFinder) Count(spans []CallSpan, within func(*CallSpan) bool, c *EdgeCounter) {
	f.parents.Index(spans)
	f.parents.Each(func(span, parent *CallSpan) {
		if parent != nil && within(span) {
			c.AddCall(parent, span)
		}
	})
	f.peers.Each(spans, func(at int) {
		if s := &spans[at]; within(s) {
			c.AddPeer(s)
		}
	})
}
