package multistore

import (
	"context"
	"time"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

var _ tracestore.Edges = (*Store)(nil)

// Dependencies implements tracestore.Edges. The calls of all stores add up. A call whose
// parent is in another store is not counted.
func (s *Store) Dependencies(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	answers, missing, err := ask(ctx, s, tenant, func(ctx context.Context, d tracestore.Edges) (tracestore.Graph, error) {
		return d.Dependencies(ctx, tenant, from, to)
	})
	if err != nil {
		return tracestore.Graph{}, err
	}
	var sum storequery.CallCounter
	missing = addGraphs(answers, missing, sum.AddEdge)
	return tracestore.Graph{Edges: sum.Edges(), Reasons: missing}, nil
}

// Peers implements tracestore.Edges. The calls of all stores add up. A call whose counterpart is in
// another store counts as one to a peer.
func (s *Store) Peers(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	answers, missing, err := ask(ctx, s, tenant, func(ctx context.Context, p tracestore.Edges) (tracestore.Graph, error) {
		return p.Peers(ctx, tenant, from, to)
	})
	if err != nil {
		return tracestore.Graph{}, err
	}
	var sum storequery.PeerCounter
	missing = addGraphs(answers, missing, sum.AddEdge)
	g := sum.Graph()
	missing.Add(g.Reasons...)
	g.Reasons = missing
	return g, nil
}

// addGraphs calls add with all edges, and returns what is missing.
func addGraphs(answers []answer[tracestore.Graph], missing tracestore.Reasons, add func(*tracestore.Edge)) tracestore.Reasons {
	for _, a := range answers {
		missing.Add(a.value.Of(a.store)...)
		for i := range a.value.Edges {
			add(&a.value.Edges[i])
		}
	}
	return missing
}

// Edges implements tracestore.Edges as Dependencies and Peers.
func (s *Store) Edges(ctx context.Context, tenant string, q tracestore.EdgeQuery) (tracestore.EdgeGraph, error) {
	answers, missing, err := ask(ctx, s, tenant, func(ctx context.Context, e tracestore.Edges) (tracestore.EdgeGraph, error) {
		return e.Edges(ctx, tenant, q)
	})
	if err != nil {
		return tracestore.EdgeGraph{}, err
	}
	sum := storequery.NewEdgeCounter(&q)
	for _, a := range answers {
		missing.Add(a.value.Of(a.store)...)
		for i := range a.value.Edges {
			sum.AddEdge(&a.value.Edges[i])
		}
	}
	g := sum.Graph()
	missing.Add(g.Reasons...)
	g.Reasons = missing
	return g, nil
}
