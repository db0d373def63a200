package storequery

import (
	"context"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// summarySearch finds traces by a condition on one span and a condition on the trace. The store
// evaluates the first, and the search evaluates the second on the summaries that the store returns,
// without reading spans.
type summarySearch struct {
	search
	trace  tracestore.Expr     // the condition on the trace
	traces *tracestore.Results // the traces with a span that matches
}

func findBySummaries(
	ctx context.Context, r tracestore.Reader, q tracestore.Query, span, trace tracestore.Expr, want tracestore.Want,
) (*tracestore.Results, error) {
	// The condition on the trace holds for all spans of a trace or for none. So the keys, their
	// order and the cursor are the same as for the condition on spans.
	inner := q
	inner.Where, inner.OfTrace, inner.Limit = span, trace, 0
	traces, err := r.Find(ctx, inner, tracestore.WantSummaries)
	if err != nil {
		return nil, err
	}
	s := &summarySearch{search: search{reader: r, query: q, want: want}, trace: trace, traces: traces}
	return s.results(ctx, s.run), nil
}

func (s *summarySearch) run(ctx context.Context) error {
	defer func() { s.traces = nil }() // the caller may keep the outcome
	err := s.filter(ctx)
	inner := s.traces.Outcome()
	s.scanned = inner.Scanned
	if err != nil {
		s.noteDamage(inner)
		return err
	}
	s.outcome = inner
	return nil
}

// filter emits the traces for which the condition on the trace holds.
func (s *summarySearch) filter(ctx context.Context) error {
	for r, err := range s.traces.All {
		if err != nil {
			return err
		}
		position := cursorOf(r)
		matched := tracestore.Match(s.trace, tracestore.Span{Trace: r.Summary})
		if err := ctx.Err(); err != nil { // matched may be wrong, see tracestore.WithContext
			return err
		}
		if matched {
			if err := s.emitTrace(ctx, r); err != nil {
				return err
			}
		}
		if s.late() {
			s.outcome = tracestore.Outcome{Reasons: reasonLate, Next: position}
			return errEnd
		}
	}
	return nil
}

// emitTrace emits a result with the parts that the caller wants, unless the trace was deleted
// meanwhile.
func (s *summarySearch) emitTrace(ctx context.Context, r tracestore.Result) error {
	if s.want != tracestore.WantSummaries {
		// There is no lower bound, because some spans may have no start time.
		ref := tracestore.TraceRef{ID: r.ID, To: TimeOf(r.Summary.End)}
		r.Summary = nil
		if s.want == tracestore.WantFull {
			if ok, err := s.read(ctx, &r, ref); err != nil || !ok {
				return err
			}
		}
	}
	return s.emit(r)
}
