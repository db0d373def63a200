package clickhouse

import (
	"context"
	"fmt"
	"time"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

var _ tracestore.Edges = (*exporter)(nil)

// Dependencies implements tracestore.Edges. Duplicates from different requests count as
// often as they are stored. See callReach for calls between distant spans.
func (e *exporter) Dependencies(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	var calls storequery.CallCounter
	missing, err := e.calls(ctx, tenant, from, to, func(s *callSum) {
		if s.flags&callToPeer == 0 {
			edge := s.edge()
			calls.AddEdge(&edge)
		}
	})
	if err != nil {
		return tracestore.Graph{}, fmt.Errorf("counting calls: %w", err)
	}
	return tracestore.Graph{Edges: calls.Edges(), Reasons: missing.ofServices()}, nil
}

// Peers implements tracestore.Edges. It counts like Dependencies.
func (e *exporter) Peers(ctx context.Context, tenant string, from, to time.Time) (tracestore.Graph, error) {
	var calls storequery.PeerCounter
	missing, err := e.calls(ctx, tenant, from, to, func(s *callSum) {
		if s.flags&callToPeer != 0 && s.flags&callToHost == 0 {
			edge := s.edge()
			calls.AddEdge(&edge)
		}
	})
	if err != nil {
		return tracestore.Graph{}, fmt.Errorf("counting calls to peers: %w", err)
	}
	if missing.peers {
		calls.MarkIncomplete()
	}
	g := calls.Graph()
	if reasons := missing.ofServices(); !reasons.Complete() {
		g.Reasons = reasons
	}
	return g, nil
}

// Edges implements tracestore.Edges. It counts like Dependencies.
func (e *exporter) Edges(ctx context.Context, tenant string, q tracestore.EdgeQuery) (tracestore.EdgeGraph, error) {
	calls := storequery.NewEdgeCounter(&q)
	missing, err := e.calls(ctx, tenant, q.From, q.To, func(s *callSum) {
		if s.flags&callInner == 0 {
			calls.AddEdge(&tracestore.CallEdge{Parent: s.parent, Child: s.child, Peer: s.flags&callToPeer != 0, Connection: s.connection,
				Calls: s.calls, Errors: s.errors, Durations: s.durations})
		}
	})
	if err != nil {
		return tracestore.EdgeGraph{}, fmt.Errorf("measuring calls: %w", err)
	}
	if missing.peers {
		calls.MarkIncomplete()
	}
	g := calls.Graph()
	if reasons := missing.ofServices(); !reasons.Complete() {
		g.Reasons = reasons
	}
	return g, nil
}

// edge returns the sum as an edge of a Graph.
func (s *callSum) edge() tracestore.Edge {
	return tracestore.Edge{Parent: s.parent, Child: s.child, Messaging: s.flags&callMessaging != 0, Calls: s.calls, Errors: s.errors,
		Duration: s.durations.Sum}
}

// missingCalls says which calls are not counted.
type missingCalls struct {
	peers  bool               // to some peers
	spans  bool               // of very long traces
	shards tracestore.Reasons // why some servers did not answer
}

// or adds what another part misses.
func (m *missingCalls) or(o missingCalls) {
	m.peers, m.spans = m.peers || o.peers, m.spans || o.spans
	if m.shards.Complete() {
		m.shards = o.shards
	}
}

// ofServices says why calls between services are missing.
func (m *missingCalls) ofServices() tracestore.Reasons {
	switch {
	case !m.shards.Complete():
		return m.shards
	case m.spans:
		return tracestore.Because(tracestore.ReasonLimit,
			fmt.Sprintf("calls of traces with more than %d spans are omitted in part", maxCallSpans))
	}
	return nil
}
