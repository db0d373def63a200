package tracestore

import (
	"context"
	"time"
)

// Dependencies is implemented by stores that count the calls between services.
//
// A call is a span together with its parent. The start of the span is the time of the call; the
// start of the parent is ignored. The parent is the span of the same trace and tenant whose id is
// the parent id, even if it arrived in another request or much later. A span whose parent is not
// stored is not a call. Spans that were sampled with a threshold count once, like others.
//
// Spans may share an id, as the two sides of a call do in Zipkin's model. A span is on the server
// side if its kind is server or consumer, and on the client side otherwise. Then:
//
//  1. The parent of a span on the server side is a span on the client side with the same id,
//     whatever the parent id is.
//  2. The parent of any other span is a span with the parent id: one of the same service if there
//     is one, otherwise one on the server side, otherwise any.
//  3. If several spans qualify, the earliest is the parent, and any of these if several start
//     together. A span is not its own parent.
//
// A store may consider only the spans that it stored together if one of them qualifies, and at most
// 64 spans of a trace that share their id with an earlier one (storequery.MaxSameID). It counts
// duplicates once, but duplicates that arrived in different requests may count once for each place
// where they are stored.
type Dependencies interface {
	// Dependencies returns the calls whose spans start between from and to, both inclusive, as in
	// Query.Window. It returns an error if calls cannot be counted at all. If only a part can be
	// counted, it returns that part and the graph is not complete.
	Dependencies(ctx context.Context, tenant string, from, to time.Time) (Graph, error)
}

// Graph holds the calls between services.
type Graph struct {
	// Edges are sorted by parent, child and messaging. Each has at least one call.
	Edges []Edge
	// Reasons says why not every call within the window is counted.
	Reasons
}

// Edge counts the calls from one service to another or to itself.
type Edge struct {
	Parent, Child string
	Messaging     bool   // the parent is a producer or the child a consumer
	Calls, Errors uint64 // Errors counts the calls whose span has the status error
	// Duration is the sum of the durations of the child spans in nanoseconds, as corrected by
	// otlpdata.Span.Duration. It is the maximum uint64 if the sum overflows.
	Duration uint64
}
