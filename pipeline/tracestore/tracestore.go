// Package tracestore is the contract between stores and whoever reads them. A store is an exporter that also implements [Reader], and as
// many of the optional interfaces as it can; readers name it in their configuration through a pipeline.Ref.
//
// What every store promises:
//   - all conditions of a query hold on one span;
//   - newest first: traces are ordered by the greatest start time of a span that matches, ties by trace id, both descending;
//   - a limit applies after all conditions and the order;
//   - a duplicate is the same trace id, span id and identical content (resource, scope and span): it is shown and counted once. Two spans
//     that share an id and differ, as the halves of a Zipkin shared span do, both stay;
//   - spans with zero ids are stored and found like others;
//   - a tenant sees its own spans only; the tenant is part of every call, never of the context.
//
// The suite in storetest holds every store to it.
package tracestore

import (
	"context"
	"iter"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// TraceRef names a trace. From and To, when not zero, are hints: the caller believes that all its spans start within them. A store may
// use them to look in fewer places, and must not leave out a span that it has at hand.
type TraceRef struct {
	ID       otlpdata.TraceID
	From, To time.Time
}

// Reader reads traces back.
type Reader interface {
	// Traces returns the traces that exist, in the order asked for; unknown ids yield nothing. A large trace may come in several
	// consecutive values of one id. An error ends the sequence. The iterator is used once and stops its work when the caller stops.
	Traces(ctx context.Context, tenant string, refs []TraceRef) iter.Seq2[Trace, error]
	// Find returns the traces with a span for which the query holds. An error says that the query cannot be answered at all; one that
	// comes up on the way ends the sequence of Results. When ctx ends before the last result, its error is one of the two.
	Find(ctx context.Context, q Query, want Want) (*Results, error)
}

// Trace is a trace, or a consecutive piece of one: all spans in Spans have the id.
type Trace struct {
	ID    otlpdata.TraceID
	Spans *otlpdata.Batch
}

// Query asks for traces.
type Query struct {
	Tenant string
	// From and To bound the start time of the matching span, both inclusive. A zero time does not bound. See Window.
	From, To time.Time
	// Where must hold on one span; nil holds on all.
	Where Expr
	// Limit is the greatest number of traces; 0 or less means no limit other than the Budget.
	Limit int
	// After continues behind the last result of an earlier answer to the same query.
	After Cursor
	// Budget bounds the work.
	Budget Budget
}

// Budget bounds the work of one query. Zero fields do not bound.
type Budget struct {
	Spans int // spans that may be examined
	// TraceSpans is how many spans of one trace are of use: Result.Spans of a longer one may end anywhere behind them.
	TraceSpans int
}

// Cursor is a place in the order of results: the key (greatest matching start, trace id) of the last result. The zero Cursor is the
// beginning. A trace whose key is at or before the cursor was listed already, and is left out also where another of its spans matches
// behind the cursor.
type Cursor struct {
	Start uint64 // nanoseconds since the Unix epoch
	ID    otlpdata.TraceID
	Set   bool
}

// Want says what Find returns of each trace.
type Want uint8

// What a result holds beside id and start.
const (
	WantIDs       Want = iota // nothing more
	WantSummaries             // Result.Summary
	WantFull                  // Result.Spans: the whole trace, not only the spans that match
)

// Result is one trace that was found.
type Result struct {
	ID      otlpdata.TraceID
	Start   uint64 // greatest start of a matching span, nanoseconds since the Unix epoch
	Summary *Summary
	Spans   *otlpdata.Batch
}

// Results is the answer of Find. All is ranged over once; Outcome may be called when that has ended, and is not Complete where the caller
// ended it early.
type Results struct {
	All     iter.Seq2[Result, error]
	Outcome func() Outcome
}

// ReasonUnread begins the Reason of an outcome when the caller ended the results early. What was missing by then follows after "; ".
const ReasonUnread = "the results were not read to their end"

// Outcome says how a query ended.
type Outcome struct {
	// Complete: everything that matches within Limit was returned. Otherwise Reason says in the user's words what is missing.
	Complete bool
	Reason   string
	// Scanned is the number of spans that were examined one by one.
	Scanned int
	// Next is where to go on when there may be more; the zero Cursor when there is not. After a Budget ran out it is the place up to
	// which spans were examined, which is behind Query.After: who goes on from there gets to the end.
	Next Cursor
}

// Catalog lists what there is to search for. Lists are sorted, without duplicates, and hold what the store still has spans for.
type Catalog interface {
	// Services returns the service names.
	Services(ctx context.Context, tenant string) ([]string, error)
	// Operations returns the operations of a service, those of one kind when kind is not "".
	Operations(ctx context.Context, tenant, service, kind string) ([]Operation, error)
}

// Operation is a span name of a service, and the kind of its spans: `client`, `server`, `producer`, `consumer`, `internal` or "".
type Operation struct{ Name, Kind string }

// AttributeCatalog lists attributes, for completion while a user types. Lists are sorted, without duplicates, and at most limit long
// (0: 1000). The key otlpdata.FlagsAttribute, which is part of the payload and not of what users see, is not listed and has no values.
type AttributeCatalog interface {
	// AttributeKeys returns the attribute keys with a prefix, of all scopes.
	AttributeKeys(ctx context.Context, tenant, prefix string, limit int) ([]string, error)
	// AttributeValues returns the text forms of the values of a key with a prefix.
	AttributeValues(ctx context.Context, tenant, key, prefix string, limit int) ([]string, error)
}
