package storequery

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// SpanSet is an expression that selects spans of a trace: [Select], [And], [Or], [Relation] or
// [Pipeline]. A trace matches if the set selects at least one of its spans. A set is evaluated on
// the whole trace, where duplicates count once. A nil SpanSet selects all spans.
type SpanSet interface{ isSpanSet() }

// Select selects the spans for which a condition holds. The condition may use fields of the trace
// such as tracestore.TraceDuration.
type Select struct{ Where tracestore.Expr }

// And selects the spans of both sides if each side selects at least one span, and none otherwise.
type And struct{ Left, Right SpanSet }

// Or selects the spans of both sides.
type Or struct{ Left, Right SpanSet }

// Relation selects the spans of Right that have a relation with a span of Left. Parents are
// resolved as in [tracestore.Edges]. Spans with the same id and start are ordered by service, kind,
// parent, duration, and content, so that the result does not depend on the store. A span is never
// related with itself, even if the parent ids form a cycle.
type Relation struct {
	Kind        RelationKind
	Mode        RelationMode
	Left, Right SpanSet
}

// RelationKind says what a span of Right is to a span of Left.
type RelationKind uint8

// The kinds of relations.
const (
	Descendant RelationKind = iota
	Child
	Ancestor
	Parent
	Sibling // has the same parent; roots are siblings of each other
)

// RelationMode changes what a Relation selects.
type RelationMode uint8

// The modes.
const (
	Related   RelationMode = iota
	Unrelated              // the spans of Right that have no such relation
	Both                   // also the spans of Left to which such spans are related
)

func (Select) isSpanSet()   {}
func (And) isSpanSet()      {}
func (Or) isSpanSet()       {}
func (Relation) isSpanSet() {}

// withContext applies tracestore.WithContext to the conditions of a set.
func withContext(ctx context.Context, set SpanSet) SpanSet {
	if s, ok := set.(Select); ok {
		return Select{simplify(tracestore.WithContext(ctx, s.Where))}
	}
	return mapSet(set, func(part SpanSet) SpanSet { return withContext(ctx, part) })
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
// means that a batch cannot be read, or that the memory for all queries is exhausted.
func VisitSelected(
	ctx context.Context, set SpanSet, id otlpdata.TraceID, ofTrace bool, visit func(tracestore.Span) error, batches ...*otlpdata.Batch,
) error {
	m := newSetMatcher(withContext(ctx, set), nil)
	if one, ok := m.set.(Select); ok && !ofTrace && !m.needsTrace {
		return visitMatching(ctx, one.Where, visit, walkBatches(batches...))
	}
	m.needsSummary = m.needsSummary || ofTrace
	memory, err := m.reserve(ctx, batches)
	if err != nil {
		return err
	}
	defer memory.Release()
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

// HaveCommonSpan reports whether all sets select the same span of a trace, and its start meets a
// condition. Batches and errors are as in VisitSelected.
func HaveCommonSpan(
	ctx context.Context, sets []SpanSet, id otlpdata.TraceID, has func(start uint64) bool, batches ...*otlpdata.Batch,
) (bool, error) {
	var selected []bool // by the sets so far
	for _, set := range sets {
		m := newSetMatcher(withContext(ctx, set), nil)
		memory, err := m.reserve(ctx, batches)
		if err != nil {
			return false, err
		}
		err = m.evaluate(ctx, id, NewDedup(), walkBatches(batches...))
		memory.Release()
		if err != nil {
			return false, fmt.Errorf("evaluating the spans of trace %s: %w", id, err)
		}
		if selected == nil {
			selected = m.selected
		}
		for at := range selected {
			selected[at] = selected[at] && m.selected[at] && has(m.starts[at])
		}
	}
	return slices.Contains(selected, true), nil
}

// VisitGroups is like VisitSelected with ofTrace, but also passes the index of the group of each
// span, and returns the values that the stages of a [Pipeline] calculated for each group. Other
// sets have one group.
func VisitGroups(
	ctx context.Context, set SpanSet, id otlpdata.TraceID, visit func(group int, s tracestore.Span) error, batches ...*otlpdata.Batch,
) (values [][]GroupValue, err error) {
	m := newSetMatcher(withContext(ctx, set), nil)
	m.needsSummary = true
	memory, err := m.reserve(ctx, batches)
	if err != nil {
		return nil, err
	}
	defer memory.Release()
	if err := m.evaluate(ctx, id, NewDedup(), walkBatches(batches...)); err != nil {
		return nil, fmt.Errorf("evaluating the spans of trace %s: %w", id, err)
	}
	groups := make([]int32, len(m.selected))
	for i, g := range m.groups {
		values = append(values, g.values)
		for _, span := range g.spans {
			groups[span] = int32(i)
		}
	}
	return values, m.each(func(s tracestore.Span, at int) error {
		if !m.selected[at] {
			return nil
		}
		return visit(int(groups[at]), s)
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
