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
// start between them. A store may use the hints to read fewer files, but must return all spans of
// the trace that it reads.
type TraceRef struct {
	ID       otlpdata.TraceID
	From, To time.Time
}

// Reader reads traces from a store. A store without optimized methods for reading a part of a trace
// embeds storequery.WholeTraces.
type Reader interface {
	// Traces returns the traces with the given ids, in the order of refs. Unknown ids yield
	// nothing. A large trace may be split into several consecutive values with the same id. An
	// error ends the sequence. If parts of traces are damaged, everything else comes first and then
	// a DamagedError. The sequence can be iterated once; it stops working when the caller stops
	// iterating.
	Traces(ctx context.Context, tenant string, refs []TraceRef) iter.Seq2[Trace, error]
	// Find returns the traces with a span that matches the query. It returns an error if the query
	// cannot be run at all; a later error ends the sequence of Results. If ctx ends before the last
	// result, one of these errors is the error of ctx.
	Find(ctx context.Context, q Query, want Want) (*Results, error)
	// SelectSpans returns the spans of a trace that have one of the ids or a link to a span of the
	// trace with one of the ids. It may also return other spans of the trace. Otherwise it is like
	// Traces for one trace.
	SelectSpans(ctx context.Context, tenant string, id otlpdata.TraceID, spans []otlpdata.SpanID) iter.Seq2[Trace, error]
	// FindSpans returns the spans of a trace that meet a condition. If it returns a DamagedError,
	// the returned spans are sound, but other spans of the trace could not be read.
	FindSpans(ctx context.Context, tenant string, id otlpdata.TraceID, c SpanCondition) (FoundSpans, error)
	// Outline calls take once with the spans of a trace, in any order and without duplicates. It
	// does not call take if the trace does not exist. If limit is above 0 and the trace has more
	// than limit spans, take gets a part with more than limit spans. The spans are valid only
	// during the call.
	//
	// Before that, and repeatedly while it reads, Outline calls hold with the number of spans that
	// it holds in memory and the bytes of their names and Extras. An error of take is returned
	// unchanged, an error of hold possibly wrapped. A DamagedError means that some spans of the
	// trace could not be read; take may have been called with the others.
	Outline(
		ctx context.Context, tenant string, id otlpdata.TraceID, limit int,
		hold func(spans, textBytes int) error, take func([]SummarySpan) error,
	) error
	// TraceVersion returns the version of a trace. A reader that starts later sees at least the
	// spans of this version. A DamagedError means that the version is unknown. The error matches
	// ErrUnsupported if the store has no versions, for example a store of another program.
	TraceVersion(ctx context.Context, tenant string, id otlpdata.TraceID) (TraceVersion, error)
	// TraceSpans returns the approximate number of spans of a large trace: hardly ever too high,
	// and not much too low. It returns 0 for a small or unknown trace, or if the number is
	// expensive to find out. Callers use it to reserve memory before they read the trace.
	TraceSpans(ctx context.Context, tenant string, id otlpdata.TraceID) (int, error)
}

// TraceVersion describes the state of a trace in a store.
type TraceVersion struct {
	// Number changes when spans are added or deleted, and may change at other times. 0 means that
	// the store has no spans of the trace; after deletions, a trace without spans may have another
	// number.
	Number uint64
	// Stored is when the last span was stored, to the second. It is zero if the store does not
	// know, or if that was more than a minute ago.
	Stored time.Time
}

// ErrAnswerTooLarge is matched by the error of a store in another process whose response contains a
// message above the reader's size limit.
var ErrAnswerTooLarge = errors.New("response of the store is too large")

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
	// the results, or nil. A store may, but need not, leave out traces for which it does not hold.
	OfTrace Expr
	// Skip holds traces that the caller has already read. A store may, but need not, leave them
	// out. The caller may add traces between two results.
	Skip map[otlpdata.TraceID]struct{}
	// Limit is the maximum number of traces. 0 or less sets no limit other than the Budget.
	Limit int
	// After continues after the last result of an earlier call with the same query.
	After Cursor
	// Budget limits the work of the query.
	Budget Budget
}

// Budget limits the work of one query. Zero fields set no limit.
type Budget struct {
	Spans int // maximum number of spans examined
	// TraceSpans is the number of spans of one trace that the caller can use. Result.Spans of a
	// longer trace may end anywhere after this number.
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

// Want selects what Find returns for each trace in addition to its id and start.
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

// Results is the result of Find. All can be iterated once. Outcome may be called after the
// iteration has ended; it has ReasonUnread if the caller ended the iteration early. It may also be
// called between two results; then only Scanned is valid, as the number of spans examined so far.
type Results struct {
	All     iter.Seq2[Result, error]
	Outcome func() Outcome
}

// Outcome describes how a query ended.
type Outcome struct {
	// Reasons says why some matching traces within Limit were not returned.
	Reasons
	// Scanned is the number of spans that were examined one by one.
	Scanned int
	// Next is the cursor of the next page, or the zero Cursor if there are no more results. If a
	// Budget was exhausted, Next is the position up to which spans were examined. It is always
	// after Query.After, so that a caller that continues reaches the end.
	Next Cursor
}
