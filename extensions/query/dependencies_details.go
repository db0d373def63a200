package query

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// What a detailed link is, in the words of OpenTelemetry's service graph.
const (
	plainCall   = ""
	messageCall = "messaging_system"
	virtualCall = "virtual_node" // to something that sends no spans
)

// detailedLink is an element of an answer with details.
type detailedLink struct {
	tracestore.Edge
	connection string
}

// detailedLinks returns the calls between two different services and those to peers, by parent, child and connection; only those from and
// to one service unless that is "".
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
		e.Messaging = false // one link to a peer, however it is called
		sums.AddEdge(&e)
	}
	for _, e := range sums.Edges() {
		add(&e, virtualCall)
	}
	slices.SortFunc(out, func(a, b detailedLink) int {
		return cmp.Or(cmp.Compare(a.Parent, b.Parent), cmp.Compare(a.Child, b.Child), cmp.Compare(a.connection, b.connection))
	})
	return out
}

// appendJSON writes durations in microseconds, as they are in traces: a sum of nanoseconds would soon be beyond what JavaScript can count.
func (l detailedLink) appendJSON(dst []byte) []byte {
	dst = otlpdata.AppendJSONString(append(dst, `{"parent":`...), l.Parent)
	dst = otlpdata.AppendJSONString(append(dst, `,"child":`...), l.Child)
	dst = strconv.AppendUint(append(dst, `,"callCount":`...), l.Calls, 10)
	dst = strconv.AppendUint(append(dst, `,"errorCount":`...), l.Errors, 10)
	dst = strconv.AppendUint(append(dst, `,"durationSum":`...), l.Duration/1000, 10)
	return append(append(append(dst, `,"connectionType":"`...), l.connection...), `"}`...)
}
