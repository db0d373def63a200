// Package tracestore defines the contract between stores and the components that read them. A store
// is an exporter that also implements [Reader] and any of the optional interfaces of this package.
// Readers name a store in their configuration through a pipeline.Ref.
//
// Every store guarantees:
//   - All conditions of a query hold on one span.
//   - Traces are ordered newest first: by the latest start time of a matching span, then by trace
//     id, both descending.
//   - The limit applies after conditions and order.
//   - A duplicate has the same trace id, the same span id and identical content (resource, scope
//     and span). It is returned and counted once. Two spans that share an id but differ, such as
//     the halves of a shared Zipkin span, are both kept.
//   - Spans with zero ids are stored and found like all others.
//   - A tenant sees only its own spans. The tenant is an argument of each call and is never taken
//     from the context.
//
// The conformance suite in storetest checks these guarantees.
package tracestore

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// TraceRef identifies a trace. From and To, if not zero, are hints: the caller expects all spans to
// start between them. A store may use the hints to read fewer files, but must not omit a span that
// it has read.
type TraceRef struct {
	ID       otlpdata.TraceID
	From, To time.Time
}

// Reader reads traces from a store.
type Reader interface {
	// Traces returns the traces with the given ids, in the order of refs. Unknown ids yield
	// nothing. A large trace may be split into several consecutive values with the same id. An
	// error ends the sequence. If parts of traces are damaged, everything else comes first and then
	// a DamagedError. The sequence can be iterated once, and stops its work when the caller stops.
	Traces(ctx context.Context, tenant string, refs []TraceRef) iter.Seq2[Trace, error]
	// Find returns the traces with a span that matches the query. It returns an error if the query
	// cannot be answered at all; a later error ends the sequence of Results. If ctx ends before the
	// last result, one of the two errors is that of ctx.
	Find(ctx context.Context, q Query, want Want) (*Results, error)
}

// ErrAnswerTooLarge is matched by the error of a store in another process whose answer has a
// message above a limit of the reader.
var ErrAnswerTooLarge = errors.New("answer of the store is too large")

// Trace is a trace or one of several consecutive pieces of it. All spans in Spans have the id.
type Trace struct {
	ID    otlpdata.TraceID
	Spans *otlpdata.Batch
}

// Query selects traces.
type Query struct {
	Tenant string
	// From and To limit the start time of the matching span, both inclusive. A zero time sets no
	// limit. See Window.
	From, To time.Time
	// Where is the condition that a span must meet. nil matches every span.
	Where Expr
	// OfTrace is a condition on fields of the trace (see Place.OfTrace) that the caller tests on
	// the results, or nil. A store may leave out traces for which it does not hold, and may return
	// them.
	OfTrace Expr
	// Skip holds traces that the caller has read before and does not need again. A store may leave
	// them out, and may return them. The caller may add traces between two results.
	Skip map[otlpdata.TraceID]struct{}
	// Limit is the maximum number of traces. 0 or less sets no limit other than the Budget.
	Limit int
	// After continues after the last result of an earlier answer to the same query.
	After Cursor
	// Budget limits the work of the query.
	Budget Budget
}

// Budget limits the work of one query. Zero fields set no limit.
type Budget struct {
	Spans int // maximum number of spans examined
	// TraceSpans is the number of spans of one trace that the caller can use. Result.Spans of a
	// longer trace may end anywhere after them.
	TraceSpans int
}

// Cursor is a position in the order of results: the key (latest matching start, trace id) of the
// last result. The zero Cursor is the beginning. A trace whose key is at or before the cursor was
// already returned. It is omitted even if another of its spans matches after the cursor.
type Cursor struct {
	Start uint64 // nanoseconds since the Unix epoch
	ID    otlpdata.TraceID
	Set   bool
}

// Want selects what Find returns for each trace in addition to id and start.
type Want uint8

// The values of Want.
const (
	WantIDs       Want = iota // nothing more
	WantSummaries             // Result.Summary
	WantFull                  // Result.Spans: the whole trace, not only the matching spans
)

// Result is one trace that Find returned.
type Result struct {
	ID      otlpdata.TraceID
	Start   uint64 // latest start of a matching span, nanoseconds since the Unix epoch
	Summary *Summary
	Spans   *otlpdata.Batch
}

// Results is the answer of Find. All can be iterated once. Outcome may be called after the
// iteration has ended; it has ReasonUnread if the caller ended the iteration early. The caller may
// also call it between two results: Scanned is then the number of spans examined so far, and the
// rest has no meaning.
type Results struct {
	All     iter.Seq2[Result, error]
	Outcome func() Outcome
}

// Outcome describes how a query ended.
type Outcome struct {
	// Reasons says why not everything that matches within Limit was returned.
	Reasons
	// Scanned is the number of spans that were examined one by one.
	Scanned int
	// Next is the cursor of the next page, or the zero Cursor if there are no more results. If a
	// Budget was exhausted, Next is the position up to which spans were examined. It is always
	// after Query.After, so that a caller who continues reaches the end.
	Next Cursor
}
