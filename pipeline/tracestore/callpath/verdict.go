package callpath

import (
	"context"
	"errors"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// find returns the ids of the traces with a span that matches a query. If the query depends on the
// trace, it may also return other traces; see profiler.filter.
func find(ctx context.Context, r tracestore.Reader, q tracestore.Query) (*tracestore.Results, error) {
	q.Where, q.OfTrace, _ = storequery.Weaken(q.Where)
	return r.Find(ctx, q, tracestore.WantIDs)
}

// test reports whether a trace with some spans meets a condition.
type test func(id otlpdata.TraceID, spans []tracestore.SummarySpan) (bool, error)

func acceptAll(otlpdata.TraceID, []tracestore.SummarySpan) (bool, error) { return true, nil }

// filter returns the test for traces that find returns for a query.
func (p *profiler) filter(ctx context.Context, q tracestore.Query) test {
	if _, uses := storequery.PlacesOf(q.Where); !uses {
		return acceptAll
	}
	_, ofTrace, exact := storequery.Weaken(q.Where)
	if !exact {
		return p.matches(ctx, q)
	}
	return func(id otlpdata.TraceID, spans []tracestore.SummarySpan) (bool, error) {
		summary := storequery.SummarizeSpans(id, spans)
		return tracestore.Match(ofTrace, tracestore.Span{Trace: &summary}), ctx.Err()
	}
}

// matches returns a function that reports whether one of the spans of a trace matches a query. The
// function reads a trace in full only if its outline is not sufficient.
func (p *profiler) matches(ctx context.Context, q tracestore.Query) test {
	from, to, ok := q.Window()
	has := func(start uint64) bool { return ok && start >= from && start <= to }
	relaxed, exact := relax(q.Where, true), outlineDecides(q.Where)
	return func(id otlpdata.TraceID, spans []tracestore.SummarySpan) (bool, error) {
		summary := storequery.SummarizeSpans(id, spans)
		may := slices.ContainsFunc(spans, func(s tracestore.SummarySpan) bool {
			return has(s.Start) && tracestore.Match(relaxed, spanOf(&s, &summary))
		})
		// After ctx has ended, may is wrong; see tracestore.WithContext.
		if err := ctx.Err(); err != nil || exact || !may {
			return may, err
		}
		return p.hasSpan(ctx, id, []storequery.SpanSet{storequery.Select{Where: q.Where}}, has)
	}
}

// of limits a sample to the traces with a span that matches its query and that all sets select.
func (s *sampling) of(ctx context.Context, sets []storequery.SpanSet) {
	if len(sets) == 0 {
		s.accepts = s.filter(ctx, s.query)
		return
	}
	s.accepts = s.selects(ctx, sets, s.query)
	where := tracestore.And{s.query.Where}
	for _, set := range sets {
		where = append(where, tracestore.WithContext(ctx, storequery.Cover(set)))
	}
	s.query.Where = where
}

// selects returns the test whether all sets select a span of a trace that matches a query.
func (s *sampling) selects(ctx context.Context, sets []storequery.SpanSet, q tracestore.Query) test {
	from, to, ok := q.Window()
	sets = append(slices.Clip(sets), storequery.Select{Where: q.Where})
	return func(id otlpdata.TraceID, spans []tracestore.SummarySpan) (bool, error) {
		s.spent += len(spans)
		return s.hasSpan(ctx, id, sets, func(start uint64) bool { return ok && start >= from && start <= to })
	}
}

// hasSpan reads a trace in full, and reports whether all sets select one of its spans.
func (p *profiler) hasSpan(
	ctx context.Context, id otlpdata.TraceID, sets []storequery.SpanSet, has func(start uint64) bool,
) (bool, error) {
	var pieces []*otlpdata.Batch
	var damaged *tracestore.DamagedError
	size, spans, limit := int64(0), 0, p.query.Budget.TraceSpans
	defer func() { _ = p.memory.Grow(-size) }() // cannot fail
	for tr, err := range p.reader.Traces(ctx, p.query.Tenant, []tracestore.TraceRef{{ID: id}}) {
		if errors.As(err, &damaged) {
			p.noteUnread(damaged.Reasons)
			break
		}
		if err == nil {
			err = p.memory.Grow(int64(tr.Spans.Size()))
		}
		if err != nil {
			return false, err
		}
		size += int64(tr.Spans.Size())
		pieces = append(pieces, tr.Spans)
		if spans += tr.Spans.Len(); limit > 0 && spans > limit {
			break
		}
	}
	return storequery.HaveCommonSpan(ctx, sets, id, has, pieces...)
}

// outlineDecides reports whether the fields of a span in an outline suffice to evaluate a
// condition.
func outlineDecides(e tracestore.Expr) bool {
	switch e := e.(type) {
	case nil:
		return true
	case tracestore.And:
		for _, part := range e {
			if !outlineDecides(part) {
				return false
			}
		}
		return true
	case tracestore.Or:
		return outlineDecides(tracestore.And(e))
	case tracestore.Not:
		return outlineDecides(e.Expr)
	case tracestore.Cond:
		return isInOutline(e)
	}
	return false
}

// relax replaces conditions that need more than an outline by constants. If hold is true, the
// result holds for each span for which e may hold; otherwise it fails for each span for which e may
// fail.
func relax(e tracestore.Expr, hold bool) tracestore.Expr {
	parts := func(list []tracestore.Expr) []tracestore.Expr {
		out := make([]tracestore.Expr, len(list))
		for i := range list {
			out[i] = relax(list[i], hold)
		}
		return out
	}
	switch e := e.(type) {
	case tracestore.And:
		return tracestore.And(parts(e))
	case tracestore.Or:
		return tracestore.Or(parts(e))
	case tracestore.Not:
		return tracestore.Not{Expr: relax(e.Expr, !hold)}
	case tracestore.Cond:
		if isInOutline(e) {
			return e
		}
		return constant(hold)
	case tracestore.Compare:
		return constant(hold)
	}
	return e
}

// constant returns a condition that always or never holds.
func constant(holds bool) tracestore.Expr {
	if holds {
		return nil
	}
	return tracestore.Or{}
}

func isInOutline(c tracestore.Cond) bool {
	if c.Field.Parent {
		return false
	}
	switch c.Field.Place {
	case tracestore.Service, tracestore.Name, tracestore.Kind, tracestore.Duration, tracestore.ParentID,
		tracestore.TraceDuration, tracestore.RootService, tracestore.RootName:
		return true
	case tracestore.Status: // an outline knows only whether it is an error
		return (c.Op == tracestore.Eq || c.Op == tracestore.Ne) && !c.Value.IsNumber && c.Value.Text == otlpdata.StatusName(otlpdata.StatusError)
	}
	return false
}

// spanOf returns a span with the fields that an outline has.
func spanOf(s *tracestore.SummarySpan, trace *tracestore.Summary) tracestore.Span {
	sp := &otlpdata.Span{SpanID: s.ID, ParentID: s.Parent, Start: s.Start, End: s.Start + s.Duration, Name: s.Name, Kind: s.Kind}
	if s.Failed {
		sp.StatusCode = otlpdata.StatusError
	}
	return tracestore.Span{Resource: &otlpdata.Resource{Service: s.Service}, Scope: &otlpdata.Scope{}, Span: sp, Trace: trace}
}
