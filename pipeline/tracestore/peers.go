package tracestore

import (
	"context"
	"time"
)

// Peers is implemented by stores that count calls to systems that send no spans: databases, queues,
// third-party services.
//
// A call to a peer is a span on the client side (see [Dependencies]) that names its peer (see
// storequery.PeerOf) and has no counterpart: no span of its trace and tenant has its id as parent
// id, and no span on the server side has the same id. It does not matter when and in which request
// these spans arrive. The start of the span is the time of the call.
//
// A store counts duplicates once, but duplicates that arrived in different requests may count once
// for each place where they are stored, even if the counterpart is stored in another place. Among
// spans that share an id, a store may consider only those that it stored together.
type Peers interface {
	// Peers returns the calls to peers whose spans start between from and to, both inclusive, as in
	// Query.Window. Edge.Child is the name of the peer, and Edge.Messaging is true if the spans are
	// producers. Errors are as those of Dependencies. If there are more than
	// storequery.MaxPeerEdges edges, some are omitted and the graph is not complete.
	Peers(ctx context.Context, tenant string, from, to time.Time) (Graph, error)
}
