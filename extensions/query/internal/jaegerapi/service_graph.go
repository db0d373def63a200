package jaegerapi

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Connection types of detailed links, as in the service graph of OpenTelemetry.
const (
	plainCall   = ""
	messageCall = "messaging_system"
	virtualCall = "virtual_node" // to a peer that sends no spans
)

// detailedLink is an element of GET /api/dependencies?details=true.
type detailedLink struct {
	edge       tracestore.Edge
	connection string
}

// detailedLinks returns the calls between two different services and the calls to peers, sorted by
// parent, child and connection type. If service is not "", only links from and to this service are
// returned.
func detailedLinks(calls, peers []tracestore.Edge, service string) []detailedLink {
	var out []detailedLink
	add := func(e *tracestore.Edge, connection string) {
		if e.Parent == e.Child || service != "" && e.Parent != service && e.Child != service {
			return
		}
		out = append(out, detailedLink{*e, connection})
	}
	for i := range calls {
		connection := plainCall
		if calls[i].Messaging {
			connection = messageCall
		}
		add(&calls[i], connection)
	}
	var sums storequery.CallCounter
	for _, e := range peers {
		e.Messaging = false // one link per peer, for calls and messages together
		sums.AddEdge(&e)
	}
	for _, e := range sums.Edges() {
		add(&e, virtualCall)
	}
	slices.SortFunc(out, func(a, b detailedLink) int {
		return cmp.Or(cmp.Compare(a.edge.Parent, b.edge.Parent), cmp.Compare(a.edge.Child, b.edge.Child),
			cmp.Compare(a.connection, b.connection))
	})
	return out
}

// appendJSON writes durations in microseconds, as in traces, because sums of nanoseconds quickly
// exceed the integers that JavaScript can represent.
func (l *detailedLink) appendJSON(dst []byte) []byte {
	e := &l.edge
	dst = appendLink(dst, &core.Link{Parent: e.Parent, Child: e.Child, Calls: e.Calls})
	dst = dst[:len(dst)-1] // continue the object
	dst = strconv.AppendUint(append(dst, `,"errorCount":`...), e.Errors, 10)
	dst = strconv.AppendUint(append(dst, `,"durationSum":`...), e.Duration/1000, 10)
	return append(append(append(dst, `,"connectionType":"`...), l.connection...), `"}`...)
}
