package servicemap

import (
	"errors"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// measured holds the data from the store.
type measured struct {
	edges     []tracestore.CallEdge
	services  map[string]*tracestore.MetricPoint // with spans of their own
	durations bool                               // the store measures durations of edges
	reasons   tracestore.Reasons                 // why data is missing
}

// Approximate sizes in bytes of the parts of a response while it is built.
const (
	edgeMemory    = 512
	serviceMemory = 256
)

// measure asks the store.
func measure(slot *core.Slot, q *query) (*measured, error) {
	m := &measured{services: make(map[string]*tracestore.MetricPoint)}
	if err := m.readEdges(slot, q); err != nil {
		return nil, err
	}
	if err := slot.HoldMore(int64(len(m.edges)) * edgeMemory); err != nil {
		return nil, err
	}
	return m, m.readServices(slot, q)
}

// readEdges reads the calls. If the store does not measure calls, it may be able to count them.
func (m *measured) readEdges(slot *core.Slot, q *query) error {
	store, ok := core.SlotAs[tracestore.Edges](slot)
	if !ok {
		return tracestore.ErrUnsupported
	}
	edges := tracestore.EdgeQuery{From: q.start, To: q.end.Add(-1)}
	if q.depth == 1 {
		edges.Service = q.service
	}
	found, err := store.Edges(slot.Context(), slot.Tenant(), edges)
	if !errors.Is(err, tracestore.ErrUnsupported) {
		m.edges, m.durations = found.Edges, true
		m.reasons.Add(found.Reasons...)
		return err
	}
	counted, err := store.Dependencies(slot.Context(), slot.Tenant(), edges.From, edges.To)
	m.addCounted(&counted)
	return err
}

// addCounted adds calls whose durations and types are unknown. Calls within a service cannot be
// distinguished from a service calling itself, so they are omitted.
func (m *measured) addCounted(g *tracestore.Graph) {
	m.reasons.Add(g.Reasons...)
	for i := range g.Edges {
		e := &g.Edges[i]
		if e.Parent == e.Child {
			continue
		}
		c := tracestore.CallEdge{Parent: e.Parent, Child: e.Child, Calls: e.Calls, Errors: e.Errors}
		if e.Messaging {
			c.Connection = tracestore.ConnectionMessaging
		}
		m.edges = append(m.edges, c)
	}
}

// readServices reads the requests of services: their server and consumer spans. If a service has
// none, all its spans count.
func (m *measured) readServices(slot *core.Slot, q *query) error {
	store, ok := core.SlotAs[tracestore.Metrics](slot)
	if !ok {
		return nil
	}
	for _, kinds := range [][]string{{"server", "consumer"}, nil} {
		found, err := store.Metrics(slot.Context(), slot.Tenant(), tracestore.MetricsQuery{
			Kinds: kinds, From: q.start, To: q.end.Add(-1), Step: wholeStep(q.end.Sub(q.start))})
		if err != nil {
			return err
		}
		m.reasons.Add(found.Reasons...)
		served := len(m.services)
		for i := range found.Series {
			if s := &found.Series[i]; m.services[s.Service] == nil {
				m.services[s.Service] = sumOf(s.Points)
			}
		}
		if err := slot.HoldMore(int64(len(m.services)-served) * serviceMemory); err != nil {
			return err
		}
	}
	return nil
}

// wholeStep returns a step that divides a time range into at most two points.
func wholeStep(length time.Duration) time.Duration { return max(length, time.Minute) }

func sumOf(points []tracestore.MetricPoint) *tracestore.MetricPoint {
	sum := new(tracestore.MetricPoint)
	for i := range points {
		sum.Calls += points[i].Calls
		sum.Errors += points[i].Errors
		sum.Durations.Add(&points[i].Durations)
	}
	return sum
}
