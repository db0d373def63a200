package storequery

import (
	"context"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// factSearch finds traces by a condition on one span and one on the trace, as stores know summaries without reading whole spans.
type factSearch struct {
	setAnswer
	trace  tracestore.Expr
	traces *tracestore.Results // with a span that matches
}

func findByFacts(ctx context.Context, r tracestore.Reader, q tracestore.Query, span, trace tracestore.Expr, want tracestore.Want) (*tracestore.Results, error) {
	// The condition on the trace holds for all of its spans or for none: keys, their order, and what was listed before the cursor are those
	// of the condition on spans.
	inner := q
	inner.Where, inner.Limit = span, 0
	traces, err := r.Find(ctx, inner, tracestore.WantSummaries)
	if err != nil {
		return nil, err
	}
	s := &factSearch{setAnswer: setAnswer{reader: r, query: q, want: want}, trace: trace, traces: traces}
	return s.results(ctx, s.run), nil
}

func (s *factSearch) run(ctx context.Context) error {
	defer func() { s.traces = nil }() // the caller may keep the outcome
	err := s.filter(ctx)
	inner := s.traces.Outcome()
	s.scanned = inner.Scanned
	if err != nil {
		s.lose(inner)
		return err
	}
	s.outcome = inner
	return nil
}

// filter goes over the traces with a span that matches.
func (s *factSearch) filter(ctx context.Context) error {
	for r, err := range s.traces.All {
		if err != nil {
			return err
		}
		place := cursorOf(r)
		if tracestore.Match(s.trace, tracestore.Span{Trace: r.Summary}) {
			if err := s.take(ctx, r); err != nil {
				return err
			}
		}
		if s.late() {
			s.outcome = tracestore.Outcome{Reason: lateReason, Next: place}
			return errEnough
		}
	}
	return nil
}

// take yields a result with what is wanted of it, unless it is gone by now.
func (s *factSearch) take(ctx context.Context, r tracestore.Result) error {
	if s.want != tracestore.WantSummaries {
		ref := tracestore.TraceRef{ID: r.ID, From: timeOf(r.Summary.Start), To: timeOf(r.Summary.End)}
		r.Summary = nil
		if s.want == tracestore.WantFull {
			if ok, err := s.read(ctx, &r, ref); err != nil || !ok {
				return err
			}
		}
	}
	return s.give(r)
}
