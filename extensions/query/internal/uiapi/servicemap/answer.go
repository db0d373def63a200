package servicemap

import (
	"cmp"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// answer is the data of GET /api/ui/v1/map. Durations are null where the store does not know them.
type answer struct {
	Start    route.Nanos `json:"start"`
	End      route.Nanos `json:"end"`      // exclusive
	Measured bool        `json:"measured"` // the store measures durations and connections of edges
	Nodes    nodeColumns `json:"nodes"`
	Edges    edgeColumns `json:"edges"`
}

// nodeColumns are the services and peers, sorted by name. Requests of a service are its server and
// consumer spans, or all its spans if it has none; requests of a peer are the calls to it.
type nodeColumns struct {
	Name       []string `json:"name"`
	Peer       []bool   `json:"peer"`       // has no spans of its own
	Connection []string `json:"connection"` // of peers: how most calls reach it; "" if unknown
	Requests   []uint64 `json:"requests"`
	Errors     []uint64 `json:"errors"`
	P95        []*int64 `json:"p95"`
}

// edgeColumns are the calls between two nodes, sorted by the names of the nodes. Timed is the
// number of calls with a known duration, from which P50 and P95 are calculated.
type edgeColumns struct {
	Parent      []int      `json:"parent"` // index of a node
	Child       []int      `json:"child"`
	Calls       []uint64   `json:"calls"`
	Errors      []uint64   `json:"errors"`
	Timed       []uint64   `json:"timed"`
	P50         []*int64   `json:"p50"`
	P95         []*int64   `json:"p95"`
	Connections [][]string `json:"connections"` // known types, the most frequent first
}

func answerOf(start, end time.Time, g *graph, durations bool) *answer {
	a := &answer{Start: route.NanosOf(start), End: route.NanosOf(end), Measured: durations}
	n := len(g.nodes)
	a.Nodes = nodeColumns{make([]string, n), make([]bool, n), make([]string, n), make([]uint64, n), make([]uint64, n), make([]*int64, n)}
	for i, of := range g.nodes {
		of.at = i
		a.Nodes.Name[i], a.Nodes.Peer[i] = of.name, of.peer
		a.Nodes.Requests[i], a.Nodes.Errors[i], a.Nodes.P95[i] = of.of.Calls, of.of.Errors, quantile(&of.of.Durations, 0.95)
		if types := typesOf(&of.connection); len(types) > 0 {
			a.Nodes.Connection[i] = types[0]
		}
	}
	n = len(g.edges)
	a.Edges = edgeColumns{make([]int, n), make([]int, n), make([]uint64, n), make([]uint64, n), make([]uint64, n),
		make([]*int64, n), make([]*int64, n), make([][]string, n)}
	for i, e := range g.edges {
		a.Edges.Parent[i], a.Edges.Child[i], a.Edges.Calls[i], a.Edges.Errors[i] = e.parent.at, e.child.at, e.calls, e.errors
		a.Edges.Timed[i], a.Edges.Connections[i] = e.durations.Count(), typesOf(&e.connection)
		a.Edges.P50[i], a.Edges.P95[i] = quantile(&e.durations, 0.5), quantile(&e.durations, 0.95)
	}
	return a
}

// Length implements route.Listing.
func (a *answer) Length() int { return len(a.Edges.Calls) }

// quantile returns a quantile in nanoseconds, or nil if there are no durations.
func quantile(h *tracestore.Histogram, q float64) *int64 {
	if h.Count() == 0 {
		return nil
	}
	ns := route.Duration(h.Quantile(q))
	return &ns
}

// typesOf returns the names of the known types with calls, the most frequent first.
func typesOf(calls *[tracestore.Connections]uint64) []string {
	var types []tracestore.Connection
	for c := tracestore.ConnectionUnknown + 1; int(c) < tracestore.Connections; c++ {
		if calls[c] > 0 {
			types = append(types, c)
		}
	}
	slices.SortStableFunc(types, func(a, b tracestore.Connection) int { return cmp.Compare(calls[b], calls[a]) })
	names := make([]string, len(types))
	for i, c := range types {
		names[i] = c.String()
	}
	return names
}
