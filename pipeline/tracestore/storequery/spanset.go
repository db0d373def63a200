package storequery

import (
	"cmp"
	"context"
	"fmt"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// SpanSet is an expression that selects spans of a trace: [Select], [And], [Or], [Descendant] or
// [Child]. A trace matches if the set selects at least one of its spans. A set is evaluated on the
// whole trace, where duplicates count once. A nil SpanSet selects all spans.
type SpanSet interface{ isSpanSet() }

// Select selects the spans for which a condition holds. The condition may use fields of the trace
// such as tracestore.TraceDuration.
type Select struct{ Where tracestore.Expr }

// And selects the spans of both sides if each side selects at least one span, and none otherwise.
type And struct{ Left, Right SpanSet }

// Or selects the spans of both sides.
type Or struct{ Left, Right SpanSet }

// Descendant selects the spans of Spans that have an ancestor in Ancestors. Parents are resolved as
// in [tracestore.Edges]. Spans with the same id and start are ordered by service, kind, parent,
// duration, and content, so that the result does not depend on the store. A span is never its own
// ancestor, even if the parent ids form a cycle.
type Descendant struct{ Ancestors, Spans SpanSet }

// Child selects the spans of Spans whose parent is in Parents. Parents are resolved as for
// [Descendant].
type Child struct{ Parents, Spans SpanSet }

func (Select) isSpanSet()     {}
func (And) isSpanSet()        {}
func (Or) isSpanSet()         {}
func (Descendant) isSpanSet() {}
func (Child) isSpanSet()      {}

// withContext applies tracestore.WithContext to the conditions of a set.
func withContext(ctx context.Context, set SpanSet) SpanSet {
	switch s := set.(type) {
	case Select:
		return Select{tracestore.WithContext(ctx, s.Where)}
	case And:
		return And{withContext(ctx, s.Left), withContext(ctx, s.Right)}
	case Or:
		return Or{withContext(ctx, s.Left), withContext(ctx, s.Right)}
	case Descendant:
		return Descendant{Ancestors: withContext(ctx, s.Ancestors), Spans: withContext(ctx, s.Spans)}
	case Child:
		return Child{Parents: withContext(ctx, s.Parents), Spans: withContext(ctx, s.Spans)}
	}
	return set
}

// Evaluate reports for each span of a whole trace, without duplicates, whether a set selects it. It
// is the reference implementation: every search finds exactly the traces in which Evaluate selects
// a span. It ignores the Trace fields of the spans.
func Evaluate(set SpanSet, trace []tracestore.Span) []bool {
	if len(trace) == 0 {
		return nil
	}
	m := newSetMatcher(set, nil)
	err := m.evaluate(context.Background(), trace[0].TraceID, nil, func(visit func(tracestore.Span) error) error {
		for _, s := range trace {
			if err := visit(s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return make([]bool, len(trace)) // cannot happen: neither the walk nor the context fails
	}
	return m.selected
}

// VisitSelected calls visit for each span of a trace that a set selects. With ofTrace, Span.Trace
// and Span.Children are set, which takes more than one pass over the spans. batches must contain
// all spans of the trace and no others; duplicates are visited once. A span is valid only during
// the call. An error of visit ends the walk and is returned. Any other error is the error of ctx,
// or means that a batch cannot be read.
func VisitSelected(
	ctx context.Context, set SpanSet, id otlpdata.TraceID, ofTrace bool, visit func(tracestore.Span) error, batches ...*otlpdata.Batch,
) error {
	m := newSetMatcher(withContext(ctx, set), nil)
	if one, ok := m.set.(Select); ok && !ofTrace && !m.needsTrace {
		return visitMatching(ctx, one.Where, visit, walkBatches(batches...))
	}
	m.needsSummary = m.needsSummary || ofTrace
	if err := m.evaluate(ctx, id, NewDedup(), walkBatches(batches...)); err != nil {
		return fmt.Errorf("evaluating the spans of trace %s: %w", id, err)
	}
	return m.each(func(s tracestore.Span, at int) error {
		if !m.selected[at] {
			return nil
		}
		return visit(s)
	})
}

// visitMatching calls visit for each span for which a condition holds that needs no other span.
func visitMatching(ctx context.Context, where tracestore.Expr, visit func(tracestore.Span) error, walk spanWalk) error {
	dedup, n := NewDedup(), 0
	err := walk(func(s tracestore.Span) error {
		if n++; n%checkInterval == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if !dedup.First(s) || !tracestore.Match(where, s) {
			return nil
		}
		return visit(s)
	})
	return cmp.Or(err, ctx.Err()) // conditions may be wrong, see tracestore.WithContext
}

// spanWalk calls visit for each span of a trace.
type spanWalk func(visit func(tracestore.Span) error) error

// walkBatches returns a walk over the spans of batches.
func walkBatches(batches ...*otlpdata.Batch) spanWalk {
	return func(visit func(tracestore.Span) error) error {
		for _, b := range batches {
			if err := tracestore.WalkSpans(b, visit); err != nil {
				return err
			}
		}
		return nil
	}
}
