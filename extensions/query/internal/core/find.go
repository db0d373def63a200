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

// Find calls visit for each trace that matches q and set, and returns how complete the result is.
// With an error, only Next of the outcome is valid: the position after the last visited trace. A
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
		o.Next = tracestore.Cursor{Start: res.Start, ID: res.ID, Set: true}
	}
	return results.Outcome(), nil
}

// FindSummaries is like Find, but for summaries of traces.
func (s *Slot) FindSummaries(q tracestore.Query, set storequery.SpanSet, visit func(*tracestore.Summary)) (
	o tracestore.Outcome, err error,
) {
	results, err := s.results(q, set, tracestore.WantSummaries)
	if err != nil {
		return o, err
	}
	for res, err := range results.All {
		if err != nil {
			return o, err
		}
		visit(res.Summary)
		o.Next = tracestore.Cursor{Start: res.Start, ID: res.ID, Set: true}
	}
	return results.Outcome(), nil
}

// VisitSelected calls visit for each span of several stored traces that a set selects; see
// storequery.VisitSelected. It returns which parts of the traces cannot be read. The memory of one
// trace at a time replaces the memory that the query held before.
func (s *Slot) VisitSelected(
	ids []otlpdata.TraceID, set storequery.SpanSet, ofTrace bool, visit func(otlpdata.TraceID, tracestore.Span) error,
) (damage tracestore.Reasons, err error) {
	refs := make([]tracestore.TraceRef, len(ids))
	for i, id := range ids {
		refs[i].ID = id
	}
	var current otlpdata.TraceID
	var pieces []*otlpdata.Batch // of the current trace
	size, spans := 0, 0
	flush := func() error {
		if len(pieces) == 0 {
			return nil
		}
		of := func(span tracestore.Span) error { return visit(current, span) }
		err := storequery.VisitSelected(s.ctx, set, current, ofTrace, of, pieces...)
		pieces, size, spans = nil, 0, 0
		return err
	}
	for piece, err := range s.Store().Traces(s.ctx, s.Tenant(), refs) {
		if damage, err = tracestore.DamageOf(err); !damage.Complete() || err != nil {
			return damage, err
		}
		if piece.ID != current {
			if err := flush(); err != nil {
				return nil, err
			}
			current = piece.ID
		}
		pieces, size, spans = append(pieces, piece.Spans), size+piece.Spans.Size(), spans+piece.Spans.Len()
		if err := s.memory.Resize(s.memoryOf(size, spans)); err != nil {
			return nil, err
		}
	}
	return nil, flush()
}
