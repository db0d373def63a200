package tracestore

import (
	"context"
	"time"
)

// Dependencies is implemented by stores that know which service calls which.
//
// A call is a span with its parent. It belongs to the start of the span, wherever its parent lies. The parent is the span of the same
// trace and tenant whose id is the parent id, whenever and in whatever request it came. A span whose parent is not stored is no call.
//
// Spans that share an id, as the two sides of a call do in Zipkin's model, have sides: server (kinds server and consumer) and client (all
// others). Then:
//
//  1. the parent of a span of the server's side is a span of the client's side with its own id, whatever its parent id says;
//  2. any other span belongs to the one with its parent id that is of its own service, else to one of the server's side, else to any;
//  3. among several that will do it is the earliest, of those any; a span is not its own parent.
//
// A store may decide among the spans that it stored together, where one of them will do, and look at no more than [MaxAlike] spans of a
// trace that share their id with an earlier one. It counts duplicates once; those that came in different requests it may count once for
// each place where it has stored them.
type Dependencies interface {
	// Dependencies returns the calls whose spans start within from and to, both inclusive and as in Query.Window. An error says that they
	// cannot be counted at all; what could be counted is returned where Graph.Complete is false.
	Dependencies(ctx context.Context, tenant string, from, to time.Time) (Graph, error)
}

// Graph is which service calls which.
type Graph struct {
	// Edges are sorted by parent, child and messaging. None is without calls.
	Edges []Edge
	// Complete: every call within the window is counted. Otherwise Reason says in the user's words what is missing.
	Complete bool
	Reason   string
}

// Edge is the calls from one service to another, or to itself.
type Edge struct {
	Parent, Child string
	Messaging     bool   // the parent is a producer or the child a consumer
	Calls, Errors uint64 // Errors are those calls whose span has the status error
	Duration      uint64 // of the children, nanoseconds, as otlpdata.Span.Duration mends it; the greatest number where the sum exceeds it
}
