package storewire

import (
	"github.com/tracing-backend/tracing/internal/wire/store_v1"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// PutEdgeQuery converts a query for measured calls.
func PutEdgeQuery(q *tracestore.EdgeQuery) *store_v1.EdgesRequest {
	return &store_v1.EdgesRequest{From: putTime(q.From), To: putTime(q.To), Service: []byte(q.Service)}
}

// GetEdgeQuery returns a query for measured calls.
func GetEdgeQuery(m *store_v1.EdgesRequest) tracestore.EdgeQuery {
	return tracestore.EdgeQuery{From: getTime(m.GetFrom()), To: getTime(m.GetTo()), Service: string(m.GetService())}
}

// PutEdges converts the answer of a store.
func PutEdges(g *tracestore.EdgeGraph) *store_v1.EdgesResponse {
	out := &store_v1.EdgesResponse{Reasons: putReasons(g.Reasons)}
	for i := range g.Edges {
		e := &g.Edges[i]
		first, counts := e.Durations.Counts()
		out.Edges = append(out.Edges, &store_v1.CallEdge{Parent: []byte(e.Parent), Child: []byte(e.Child), Peer: e.Peer,
			Connection: store_v1.Connection(e.Connection), Calls: e.Calls, Errors: e.Errors, Duration: e.Durations.Sum,
			FirstBucket: uint32(first), Counts: counts})
	}
	return out
}

// GetEdges returns the answer of a store. A newer server may have types of connections that are
// unknown here.
func GetEdges(m *store_v1.EdgesResponse) (g tracestore.EdgeGraph, err error) {
	g = tracestore.EdgeGraph{Reasons: getReasons(m.GetReasons())}
	for _, part := range m.GetEdges() {
		e := tracestore.CallEdge{Parent: string(part.GetParent()), Child: string(part.GetChild()), Peer: part.GetPeer(),
			Calls: part.GetCalls(), Errors: part.GetErrors()}
		if c := part.GetConnection(); c > 0 && int(c) < tracestore.Connections {
			e.Connection = tracestore.Connection(c)
		}
		e.Durations, err = tracestore.HistogramOf(part.GetDuration(), int(part.GetFirstBucket()), part.GetCounts())
		if err != nil {
			return g, invalid("%w", err)
		}
		g.Edges = append(g.Edges, e)
	}
	return g, nil
}
