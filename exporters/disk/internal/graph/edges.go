package graph

import (
	"context"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/stats"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Edges implements tracestore.Edges. It reads the calls of whole minutes from the statistics of
// segments, as Dependencies does, and the calls to peers from rows.
func (b *Builder) Edges(ctx context.Context, tenant string, q tracestore.EdgeQuery) (tracestore.EdgeGraph, error) {
	first, last, ok := tracestore.Query{From: q.From, To: q.To}.Window()
	if !ok || ctx.Err() != nil {
		return tracestore.EdgeGraph{}, ctx.Err()
	}
	sums := storequery.NewEdgeCounter(&q)
	reasons, err := b.readCalls(ctx, &callReader{caches: &b.caches, tenant: tenant, from: first, to: last, edges: sums})
	if err != nil {
		return tracestore.EdgeGraph{}, err
	}
	peers, err := b.readPeers(ctx, tenant, scan.Range{From: first, To: last}, sums)
	if err != nil {
		return tracestore.EdgeGraph{}, err
	}
	reasons.Add(peers...)
	g := sums.Graph()
	reasons.Add(g.Reasons...)
	g.Reasons = reasons
	return g, nil
}

// addCall counts a call.
func (c *callReader) addCall(parent, child *storequery.CallSpan) {
	if c.edges != nil {
		c.edges.AddCall(parent, child)
		return
	}
	c.calls.AddCall(parent, child)
}

// addMeasured measures the calls of a point of the statistics.
func (c *callReader) addMeasured(edges *stats.EdgeStats, p *stats.EdgePoint) {
	e := &edges.Edges[p.Edge]
	if e.Kind&stats.Inner != 0 {
		return
	}
	c.edges.AddEdge(&tracestore.CallEdge{Parent: e.Parent, Child: e.Child, Connection: e.Kind.Connection(),
		Calls: p.Calls, Errors: p.Errors, Durations: p.Durations})
}

// sideOf returns the Side of a span.
func sideOf(s *storequery.CallSpan) stats.Side {
	return stats.Side{Service: s.Service, Kind: s.Kind, Connection: s.Connection}
}

// addResolved measures calls of the edge cache.
func (c *callReader) addResolved(name *callName, p *callPoint) {
	if name.kind&stats.Inner != 0 {
		return
	}
	e := tracestore.CallEdge{Parent: name.parent, Child: name.child, Connection: name.kind.Connection(),
		Calls: p.sum.calls, Errors: p.sum.errors}
	e.Durations.AddBucket(int(p.bucket), p.sum.calls)
	e.Durations.Sum = p.sum.duration
	c.edges.AddEdge(&e)
}

// shapeConnections caches the types of connections of shapes.
type shapeConnections struct {
	tables *rows.Tables // of the shapes; nil: none
	known  []uint8      // by shape: 1 + tracestore.Connection; 0: not known yet
}

// connection returns the type of connection that the rows of a shape indicate.
func (c *callReader) connection(t *rows.Tables, shape uint32) tracestore.Connection {
	s := &c.connections
	if s.tables != t {
		s.tables, s.known = t, make([]uint8, len(t.Shapes))
	}
	if s.known[shape] == 0 {
		of := &t.Shapes[shape]
		s.known[shape] = 1 + uint8(tracestore.ConnectionOfKeys(of.Kind, t.AttributeKeys(of)))
	}
	return tracestore.Connection(s.known[shape] - 1)
}
