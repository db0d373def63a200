package tracestore

import (
	"context"
	"fmt"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// SpanSet is an expression that chooses spans of a trace: [Select], [Both], [Either] or [Below]. A trace is found by it where it chooses a
// span. It is evaluated on the whole trace, of which duplicates count once. nil chooses all spans.
type SpanSet interface{ isSpanSet() }

// Select chooses the spans on which a condition holds, among whose places there may be those of the trace (TraceDuration and the like).
type Select struct{ Where Expr }

// Both chooses what either side does where both choose a span, and nothing otherwise.
type Both struct{ Left, Right SpanSet }

// Either chooses what either side does.
type Either struct{ Left, Right SpanSet }

// Below chooses those of Spans that have one of Above among their ancestors or, if it is Direct, as their parent. Parents are those of
// [Dependencies]; of spans with one id that start together, the one with the lesser service, kind, parent, duration or content comes
// first. A span is not its own ancestor, also where parents lead back to it.
type Below struct {
	Above, Spans SpanSet
	Direct       bool
}

func (Select) isSpanSet() {}
func (Both) isSpanSet()   {}
func (Either) isSpanSet() {}
func (Below) isSpanSet()  {}

// EvaluateSet says of each of the spans of a whole trace, among which are no duplicates, whether a set chooses it. It is the reference:
// whatever way a trace is found, it is found where a span is chosen. What the spans say of their trace is not looked at.
func EvaluateSet(set SpanSet, trace []Span) []bool {
	if len(trace) == 0 {
		return nil
	}
	m := newSetMatcher(set, nil)
	err := m.evaluate(context.Background(), trace[0].TraceID, nil, func(visit func(Span) error) error {
		for _, s := range trace {
			if err := visit(s); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return make([]bool, len(trace)) // nothing above can fail
	}
	return m.chosen
}

// VisitSet calls visit for each span of a trace that a set chooses, with what is known of the trace. batches hold all spans of the trace
// and no others; duplicates count once. What a span points to is valid during the call only. An error of visit ends the walk and is
// returned; any other is that of ctx, or says that a batch cannot be read.
func VisitSet(ctx context.Context, set SpanSet, id otlpdata.TraceID, visit func(Span) error, batches ...*otlpdata.Batch) error {
	m := newSetMatcher(set, nil)
	m.facts = true
	walk := walkBatches(batches...)
	if err := m.evaluate(ctx, id, NewDedup(), walk); err != nil {
		return fmt.Errorf("looking for spans of trace %s: %w", id, err)
	}
	i := 0
	return walk(func(s Span) error {
		if i++; !m.chosen[i-1] {
			return nil
		}
		s.Trace = &m.summary
		return visit(s)
	})
}

// walkBatches returns a walk over the spans of batches.
func walkBatches(batches ...*otlpdata.Batch) func(visit func(Span) error) error {
	return func(visit func(Span) error) error {
		for _, b := range batches {
			if err := WalkSpans(b, visit); err != nil {
				return err
			}
		}
		return nil
	}
}
