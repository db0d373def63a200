package core

import (
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// results runs a query, restricted to the traces that set selects unless set is nil.
func (s *Slot) results(q tracestore.Query, set storequery.SpanSet, want tracestore.Want) (*tracestore.Results, error) {
	if set == nil {
		return s.Store().Find(s.ctx, q, want)
	}
	return storequery.Find(s.ctx, s.Store(), q, set, want)
}

// Find calls visit for each trace that matches q and set, and returns how complete the result is. A
// nil set selects all traces. The query holds the memory of one trace at a time.
func (s *Slot) Find(q tracestore.Query, set storequery.SpanSet, visit func(otlpdata.TraceID, *otlpdata.Batch) error) (
	o tracestore.Outcome, err error,
) {
	results, err := s.results(q, set, tracestore.WantFull)
	if err != nil {
		return o, err
	}
	for res, err := range results.All {
		if err == nil {
			s.memory.Release()
			err = s.hold(res.Spans)
		}
		if err == nil {
			err = visit(res.ID, res.Spans)
		}
		if err != nil {
			return o, err
		}
	}
	return results.Outcome(), nil
}

// FindSummaries is like Find, but for summaries of traces.
func (s *Slot) FindSummaries(q tracestore.Query, set storequery.SpanSet, visit func(*tracestore.Summary)) (tracestore.Outcome, error) {
	results, err := s.results(q, set, tracestore.WantSummaries)
	if err != nil {
		return tracestore.Outcome{}, err
	}
	for res, err := range results.All {
		if err != nil {
			return tracestore.Outcome{}, err
		}
		visit(res.Summary)
	}
	return results.Outcome(), nil
}

// VisitSelected calls visit for each span of a stored trace that a set selects; see
// storequery.VisitSelected. It returns which parts of the trace cannot be read. The trace must not
// have more than Limits.TraceSize spans. Its memory replaces the memory that the query held before.
func (s *Slot) VisitSelected(
	ref tracestore.TraceRef, set storequery.SpanSet, ofTrace bool, visit func(tracestore.Span) error,
) (damage tracestore.Reasons, err error) {
	pieces, damage, err := s.read(s.Store(), ref)
	if err != nil {
		return nil, err
	}
	return damage, storequery.VisitSelected(s.ctx, set, ref.ID, ofTrace, visit, pieces...)
}
