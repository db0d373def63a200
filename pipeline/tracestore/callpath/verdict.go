package callpath

import (
	"context"
	"errors"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// isSelected returns a function that reports whether a trace with some spans is selected: whether
// one of them matches the query both.
func (p *profiler) isSelected(
	ctx context.Context, both tracestore.Query,
) func([]tracestore.SummarySpan, otlpdata.TraceID) (bool, error) {
	from, to, _ := both.Window()
	has := func(start uint64) bool { return start >= from && start <= to }
	if !outlineDecides(both.Where) {
		return func(_ []tracestore.SummarySpan, id otlpdata.TraceID) (bool, error) {
			return p.hasSpan(ctx, id, both.Where, has)
		}
	}
	return func(spans []tracestore.SummarySpan, id otlpdata.TraceID) (bool, error) {
		summary := storequery.SummarizeSpans(id, spans)
		for i := range spans {
			if s := &spans[i]; has(s.Start) && tracestore.Match(both.Where, spanOf(s, &summary)) {
				return true, ctx.Err()
			}
		}
		return false, ctx.Err() // it may be wrong, see tracestore.WithContext
	}
}

// hasSpan reads a trace in full, and reports whether a span matches.
func (p *profiler) hasSpan(
	ctx context.Context, id otlpdata.TraceID, where tracestore.Expr, has func(start uint64) bool,
) (found bool, err error) {
	var pieces []*otlpdata.Batch
	var damaged *tracestore.DamagedError
	size, spans, limit := int64(0), 0, p.query.Budget.TraceSpans
	defer func() { _ = p.memory.Grow(-size) }() // cannot fail
	for tr, err := range p.reader.Traces(ctx, p.query.Tenant, []tracestore.TraceRef{{ID: id}}) {
		if errors.As(err, &damaged) {
			p.note(damaged.Reason)
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
	err = storequery.VisitSelected(ctx, storequery.Select{Where: where}, id, func(s tracestore.Span) error {
		found = found || has(s.Start)
		return nil
	}, pieces...)
	return found, err
}

// outlineDecides reports whether what an outline has of a span suffices to evaluate a condition.
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

func isInOutline(c tracestore.Cond) bool {
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
