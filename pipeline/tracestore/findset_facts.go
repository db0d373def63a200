package tracestore

import (
	"context"
	"slices"
)

// factSearch finds traces by a condition on one span and one on the trace, as stores know summaries without reading whole spans.
type factSearch struct {
	setAnswer
	trace   Expr
	traces  *Results // with a span that matches
	pending []Result // that fit, and whose spans are to be read together
	size    int      // of pending when they are
}

// mostRead is how many traces are read together at most. At first it is one, which the caller waits for.
const mostRead = 32

func findByFacts(ctx context.Context, r Reader, q Query, span, trace Expr, want Want) (*Results, error) {
	// The condition on the trace holds for all of its spans or for none: keys, their order, and what was listed before the cursor are those
	// of the condition on spans.
	inner := q
	inner.Where, inner.Limit = span, 0
	traces, err := r.Find(ctx, inner, WantSummaries)
	if err != nil {
		return nil, err
	}
	s := &factSearch{setAnswer: setAnswer{reader: r, query: q, want: want}, trace: trace, traces: traces, size: 1}
	return s.results(ctx, s.run), nil
}

func (s *factSearch) run(ctx context.Context) error {
	err := s.filter(ctx)
	inner := s.traces.Outcome()
	s.scanned = inner.Scanned
	if err == nil {
		err = s.flush(ctx)
	}
	if err == nil {
		s.outcome = inner
	}
	return err
}

// filter goes over the traces with a span that matches.
func (s *factSearch) filter(ctx context.Context) error {
	for r, err := range s.traces.All {
		if err != nil {
			return err
		}
		if !Match(s.trace, Span{Trace: r.Summary}) {
			continue
		}
		s.pending = append(s.pending, r)
		if s.want == WantFull && len(s.pending) < s.size && s.found+len(s.pending) != s.query.Limit {
			continue
		}
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

// flush yields the pending results.
func (s *factSearch) flush(ctx context.Context) error {
	if err := s.prepare(ctx); err != nil {
		return err
	}
	for _, r := range s.pending {
		if err := s.give(r); err != nil {
			return err
		}
	}
	s.pending, s.size = s.pending[:0], min(2*s.size, mostRead)
	return nil
}

// prepare gives the pending results what is wanted of them. Those that are gone by now are left out.
func (s *factSearch) prepare(ctx context.Context) error {
	if s.want == WantSummaries || len(s.pending) == 0 {
		return nil
	}
	refs := make([]TraceRef, len(s.pending))
	for i := range s.pending {
		r := &s.pending[i]
		refs[i] = TraceRef{ID: r.ID, From: timeOf(r.Summary.Start), To: timeOf(r.Summary.End)}
		r.Summary = nil
	}
	if s.want != WantFull {
		return nil
	}
	spans, err := readTraces(ctx, s.reader, s.query, refs)
	if err != nil {
		return err
	}
	s.pending = slices.DeleteFunc(s.pending, func(r Result) bool { return spans[r.ID] == nil })
	for i := range s.pending {
		s.pending[i].Spans = spans[s.pending[i].ID]
	}
	return nil
}
