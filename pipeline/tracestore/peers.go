package tracestore

import (
	"context"
	"time"
)

// Peers is implemented by stores that know which services call something that sends no spans: databases, queues, services of others.
//
// A call to a peer is a span of the client's side (see [Dependencies]) that names its peer, see [PeerOf], and that nothing answers: no span
// of its trace and tenant has its id as parent id, and none of the server's side shares its id, whenever and in whatever request it came.
// It belongs to the start of the span.
//
// A store counts duplicates once; those that came in different requests it may count once for each place where it has stored them, also
// where what answers them is in another one. Of spans that share an id it may look at those only that it stored together.
type Peers interface {
	// Peers returns the calls to peers whose spans start within from and to, both inclusive and as in Query.Window. Edge.Child is the name
	// of the peer; Edge.Messaging says that the spans are producers. The error is as that of Dependencies. Where there are more than
	// [MaxPeerEdges] edges, some are left out and Graph.Complete is false.
	Peers(ctx context.Context, tenant string, from, to time.Time) (Graph, error)
}
