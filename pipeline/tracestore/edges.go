package tracestore

import (
	"context"
	"iter"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Edges is implemented by stores that count the calls between services, and from services to
// systems that send no spans: databases, queues, third-party services. These are peers.
//
// A call is a span together with its parent. The start of the span is the time of the call; the
// start of the parent is ignored. The parent is the span of the same trace and tenant whose id is
// the parent id, even if it arrived in another request or much later. A span whose parent is not
// stored is not a call. Counts are not adjusted for sampling.
//
// Spans may share an id, as the two sides of a call do in Zipkin's model. A span is on the server
// side if its kind is server or consumer, and on the client side otherwise. Then:
//
//  1. The parent of a span on the server side is a span on the client side with the same id,
//     whatever the parent id is.
//  2. The parent of any other span is a span with the parent id: one of the same service if there
//     is one, otherwise one on the server side, otherwise any.
//  3. If several spans qualify, the earliest is the parent, or any of the earliest if several start
//     together. A span is not its own parent.
//
// If one of the spans that a store received in the same request qualifies, the store may ignore all
// others. It may consider at most 64 spans of a trace that share their id with an earlier one
// (storequery.MaxSameID). It counts duplicates once, but duplicates that arrived in different
// requests may count once for each place where they are stored.
//
// A call to a peer is a span on the client side that names its peer (see storequery.PeerOf) and has
// no counterpart: no span of its trace and tenant has its id as parent id, and no span on the
// server side has the same id. It does not matter when and in which request these spans arrive.
// Duplicates are counted as for other calls, even if the counterpart is stored in another place.
// Among spans that share an id, a store may consider only spans that it stored together.
type Edges interface {
	// Dependencies returns the calls whose spans start between from and to, both inclusive, as in
	// Query.Window. It returns an error if calls cannot be counted at all. If only some can be
	// counted, it returns these and the graph is incomplete.
	Dependencies(ctx context.Context, tenant string, from, to time.Time) (Graph, error)
	// Peers is like Dependencies for the calls to peers. Edge.Child is the name of the peer, and
	// Edge.Messaging is true if the spans are producers. If there are more than
	// storequery.MaxPeerEdges edges, some are omitted and the graph is not complete. A store of
	// another program may not support it: the error matches ErrUnsupported.
	Peers(ctx context.Context, tenant string, from, to time.Time) (Graph, error)
	// Edges measures the calls of Dependencies and Peers together, without the calls within a
	// service: a span and its parent of the same service are a call only if the span is on the
	// server side. A span of the kind client that names no peer may name a host instead
	// (storequery.EdgePeerOf). Limits and errors are the same as for Peers.
	Edges(ctx context.Context, tenant string, q EdgeQuery) (EdgeGraph, error)
}

// EdgeQuery selects calls.
type EdgeQuery struct {
	From, To time.Time // inclusive, as in Query.Window
	Service  string    // caller or callee; "" for all
}

// Selects reports whether the query selects the calls between a caller and a callee, regardless of
// their time.
func (q *EdgeQuery) Selects(parent, child string) bool {
	return q.Service == "" || q.Service == parent || q.Service == child
}

// EdgeGraph is the result of an EdgeQuery.
type EdgeGraph struct {
	// Edges are sorted by parent, child, peer and connection. Each has at least one call.
	Edges []CallEdge
	// Reasons says why some selected calls are not counted.
	Reasons
}

// CallEdge counts the calls from a service to a service or a peer over one type of connection.
type CallEdge struct {
	Parent, Child string
	Peer          bool // Child sends no spans
	Connection    Connection
	Calls, Errors uint64 // Errors counts the calls whose span has the status error
	// Durations has the durations of the calls: those of the child span, or of the parent for
	// peers. A store may not know the durations of calls from before it measured them; then
	// Durations.Count() is less than Calls.
	Durations Histogram
}

// Connection is the type of a connection. The numbers are part of file formats and protocols.
type Connection uint8

// The types of connections, the most specific first. A span with attributes of several types has
// the first of them.
const (
	ConnectionUnknown Connection = iota
	ConnectionMessaging
	ConnectionDatabase
	ConnectionGRPC
	ConnectionRPC // other than gRPC
	ConnectionHTTP
	numConnections
)

// Connections is the number of types of connections, including ConnectionUnknown.
const Connections = int(numConnections)

// String returns the name of the type in responses; "" means unknown.
func (c Connection) String() string {
	names := [...]string{"", "messaging", "database", "grpc", "rpc", "http"}
	if int(c) < len(names) {
		return names[c]
	}
	return ""
}

// connectionOfKey returns the type of connection that the presence of a span attribute indicates,
// regardless of its value. The keys are from OpenTelemetry's semantic conventions, old and new.
func connectionOfKey(key string) Connection {
	switch key {
	case "db.system.name", "db.system":
		return ConnectionDatabase
	case "messaging.system":
		return ConnectionMessaging
	case "rpc.grpc.status_code":
		return ConnectionGRPC
	case "rpc.system", "rpc.system.name":
		return ConnectionRPC
	case "http.request.method", "http.method", "http.url", "url.full", "http.response.status_code", "http.status_code":
		return ConnectionHTTP
	}
	return ConnectionUnknown
}

// Or returns the more specific of two types.
func (c Connection) Or(o Connection) Connection {
	if c == ConnectionUnknown || o != ConnectionUnknown && o < c {
		return o
	}
	return c
}

// ConnectionOf returns the type of connection that a span's kind or attributes indicate.
func ConnectionOf(s *otlpdata.Span) Connection {
	return ConnectionOfKeys(s.Kind, func(yield func(string) bool) {
		for i := range s.Attributes {
			if !yield(s.Attributes[i].Key) {
				return
			}
		}
	})
}

// ConnectionOfKeys is like [ConnectionOf] for a span with a kind and attributes with the given
// keys.
func ConnectionOfKeys(kind int32, keys iter.Seq[string]) Connection {
	c := connectionOfKind(kind)
	for key := range keys {
		c = c.Or(connectionOfKey(key))
	}
	return c
}

// IsInnerCall reports whether a call stays within a service, by the rule of [Edges].
func IsInnerCall(parentService, childService string, childKind int32) bool {
	return parentService == childService && childKind != otlpdata.KindServer && childKind != otlpdata.KindConsumer
}

// connectionOfKind returns the type of connection that a span kind indicates.
func connectionOfKind(kind int32) Connection {
	if kind == otlpdata.KindProducer || kind == otlpdata.KindConsumer {
		return ConnectionMessaging
	}
	return ConnectionUnknown
}

// ConnectionOfCall returns the type of a call's connection, which the child span or else its parent
// indicates. A store that cannot determine the type cheaply may count it as unknown.
func ConnectionOfCall(parent, child Connection) Connection {
	if child != ConnectionUnknown {
		return child
	}
	return parent
}
