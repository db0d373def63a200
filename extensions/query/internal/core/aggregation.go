package core

import (
	"context"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/aggregates"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// Window is a time range of span starts, both ends inclusive. A zero time is no bound.
type Window struct{ From, To time.Time }

// Split divides times into about n parts of the same length, plus the remainder of each.
func Split(times []Window, n int) (parts []Window) {
	var all time.Duration
	for _, w := range times {
		all += w.To.Sub(w.From) + 1
	}
	length := max(all/time.Duration(n), 1)
	for _, w := range times {
		for from := w.From; !from.After(w.To); from = from.Add(length) {
			part := Window{From: from, To: from.Add(length - 1)}
			if part.To.After(w.To) {
				part.To = w.To
			}
			parts = append(parts, part)
		}
	}
	return parts
}

// Aggregation asks a store to describe spans, or their traces, without returning them.
type Aggregation struct {
	Store  tracestore.Aggregator
	Window Window
	Where  tracestore.Expr // nil selects all spans
	// Set, if not nil, further limits the spans. It is needed if they depend on whole traces, and
	// for Traces and Selected.
	Set      storequery.SpanSet
	Traces   bool               // see storequery.SetAggregation
	OfTrace  bool               // see storequery.SetAggregation
	Selected storequery.SpanSet // see storequery.SetAggregation
	// Durations, if not nil and Set is not nil, receives the durations of the counted spans or
	// traces.
	Durations *[]uint64
	Spec      tracestore.Aggregation
	MaxSpans  int           // maximum number to examine; 0 or above Limits.Aggregated means Limits.Aggregated
	MaxTime   time.Duration // 0: Limits.Timeout
	OfErrors  bool          // MaxSpans is Limits.ErrorScan, which is higher because failed spans are rare
	Parts     int           // number of aggregations that share the maximum, of parts of a time range; 0 means 1
}

// Check returns an error if the store does not support the aggregation.
func (a *Aggregation) Check() error { return a.Spec.Check(a.query()) }

func (a *Aggregation) query() tracestore.Query {
	return tracestore.Query{From: a.Window.From, To: a.Window.To, Where: a.Where}
}

// wholeTraceCost is the approximate cost of examining a span in its trace, as a multiple of
// examining it alone.
const wholeTraceCost = 25

// Aggregate runs an aggregation and reserves memory for it.
func (s *Slot) Aggregate(a *Aggregation) (tracestore.Aggregate, error) {
	q := a.query()
	q.Tenant = s.Tenant()
	ofSet := a.Set != nil || a.OfTrace || a.countsRelatives()
	q.Budget.Spans = s.backend.opts.Limits.Aggregated
	if ofSet {
		q.Budget.Spans = max(q.Budget.Spans/wholeTraceCost, 1)
	}
	if a.OfErrors {
		q.Budget.Spans = s.backend.opts.Limits.ErrorScan
	}
	q.Budget.Spans = max(q.Budget.Spans/max(a.Parts, 1), 1)
	if a.MaxSpans > 0 {
		q.Budget.Spans = min(a.MaxSpans, q.Budget.Spans)
	}
	ctx := s.ctx
	if a.MaxTime > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, a.MaxTime)
		defer cancel()
	}
	if err := s.HoldAggregation(a.memory()); err != nil {
		return tracestore.Aggregate{}, err
	}
	run := func(spec tracestore.Aggregation) (tracestore.Aggregate, error) {
		return aggregates.Aggregate(ctx, a.Store, q, spec)
	}
	if ofSet {
		q.Budget.TraceSpans = s.backend.opts.Limits.TraceSize
		want := storequery.SetAggregation{Traces: a.Traces, OfTrace: a.OfTrace, Selected: a.Selected, Durations: a.Durations}
		run = func(spec tracestore.Aggregation) (tracestore.Aggregate, error) {
			want.Aggregation = spec
			return storequery.AggregateSet(ctx, s.Store(), q, a.Set, want)
		}
	}
	found, err := run(a.Spec)
	if err != nil || found.Facets == nil || len(a.Spec.Facets.Fields) > 0 {
		return found, err
	}
	names := s.backend.opts.Names.Of
	err = aggregates.JoinFacets(found.Facets, a.Spec.Facets, names, func(of tracestore.FacetQuery) (*tracestore.Facets, error) {
		joined, err := run(tracestore.Aggregation{Facets: of})
		found.Scanned += joined.Scanned
		found.Reasons.Add(joined.Reasons...)
		return joined.Facets, err
	})
	return found, err
}

// countsRelatives reports whether facets or groups need whole traces.
func (a *Aggregation) countsRelatives() bool {
	fields := append(slices.Concat(a.Spec.Facets.Fields, a.Spec.Groups.By), a.Spec.Groups.Of)
	return slices.ContainsFunc(fields, func(f tracestore.Field) bool {
		return f.OfTrace() && f.OfSpan()
	})
}

// FacetMemory is the memory in bytes that is reserved for facets before they are counted. The store
// reserves more while it counts their values.
const FacetMemory = 4 << 20

// GroupMemory is like FacetMemory, for groups.
const GroupMemory = 4 << 20

// memory returns an upper bound for the memory in bytes of the result and its calculation, except
// facets and groups.
func (a *Aggregation) memory() (bytes int64) {
	const cell, buckets, exemplar = 64, tracestore.HeatBuckets, 1 << 10
	if step := a.Spec.Heatmap.Step; step > 0 {
		bytes += (int64(a.Window.To.Sub(a.Window.From)/step) + 2) * buckets * cell
	}
	if a.Spec.Facets.Values > 0 {
		bytes += FacetMemory
	}
	if a.Spec.Groups.Requested() {
		bytes += GroupMemory
	}
	return bytes + int64(a.Spec.Exemplars)*exemplar
}
