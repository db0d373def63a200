package storequery

import (
	"encoding/binary"
	"runtime"
	"slices"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// chain returns a trace in which each span is the child of the one before it.
func chain(spans int) *otlpdata.Batch {
	td := ptrace.NewTraces()
	list := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	for i := range spans {
		s := list.AppendEmpty()
		s.SetTraceID([16]byte{1})
		var id pcommon.SpanID
		binary.BigEndian.PutUint64(id[:], uint64(i+1))
		s.SetSpanID(id)
		binary.BigEndian.PutUint64(id[:], uint64(i))
		s.SetParentSpanID(id)
		s.SetStartTimestamp(pcommon.Timestamp(i + 1))
		s.SetEndTimestamp(pcommon.Timestamp(i + 9))
	}
	return otlpdata.FromTraces(td, otlpdata.Meta{})
}

// bySpan is a stage that makes a group of each span.
var bySpan = GroupBy{By: tracestore.Field{Place: tracestore.SpanID}}

// TestStructureInManyGroups checks that relations within groups need memory for the spans of each
// group, not for the whole trace.
func TestStructureInManyGroups(t *testing.T) {
	for _, kind := range []RelationKind{Descendant, Child, Ancestor, Parent, Sibling} {
		set := Pipeline{Stages: []Stage{bySpan, Refine{Relation{Kind: kind, Mode: Unrelated, Left: Select{}, Right: Select{}}}}}
		allocated := func(spans int) uint64 {
			b, n := chain(spans), 0
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			err := VisitSelected(t.Context(), set, otlpdata.TraceID{1}, false, func(tracestore.Span) error { n++; return nil }, b)
			runtime.ReadMemStats(&after)
			if err != nil || n != spans {
				t.Fatalf("relation %d: %d of %d spans, %v", kind, n, spans, err)
			}
			return after.TotalAlloc - before.TotalAlloc
		}
		if small, large := allocated(500), allocated(4000); large > 16*small {
			t.Errorf("relation %d: %d bytes for 500 spans, %d for 4000", kind, small, large)
		}
	}
}

// parentConditions returns a set with n conditions on different attributes of parents.
func parentConditions(n int) SpanSet {
	var some tracestore.Or
	for i := range n {
		field := tracestore.Field{Place: tracestore.AnyAttribute, Key: string(rune('a' + i)), Parent: true}
		some = append(some, tracestore.Cond{Field: field, Value: tracestore.Text("x")})
	}
	return Select{some}
}

// TestMatcherMemory checks that an evaluation reserves memory for what it keeps of each span.
func TestMatcherMemory(t *testing.T) {
	const spans = 1000
	store := newFakeStore(t, "often")
	id := otlpdata.TraceID{1}
	store.traces = []tracestore.Trace{{ID: id, Spans: chain(spans)}}
	computed := func(n int) (p Pipeline) {
		for range n {
			p.Stages = append(p.Stages, Filter{Op: tracestore.Ge, Left: Aggregate{Func: Max, Of: tracestore.Field{Place: tracestore.Duration}},
				Right: tracestore.Constant{Value: otlpdata.IntValue(0)}})
		}
		return p
	}
	grouped := func(n int) (p Pipeline) {
		return Pipeline{Stages: slices.Repeat([]Stage{bySpan}, n)}
	}
	for name, sets := range map[string]struct {
		few, many SpanSet
		perSpan   int64 // more for many than for few
	}{
		"parent fields": {parentConditions(2), parentConditions(102), 100 * 39},
		"operands":      {computed(1), computed(101), 100 * 31},
		"groups":        {grouped(1), grouped(5), 4 * (32 + 48)},
	} {
		for method, run := range map[string]func(a tracestore.Account, set SpanSet) error{
			"VisitSelected": func(a tracestore.Account, set SpanSet) error {
				ctx := tracestore.WithAccount(t.Context(), a)
				return VisitSelected(ctx, set, id, false, func(tracestore.Span) error { return nil }, store.traces[0].Spans)
			},
			"VisitGroups": func(a tracestore.Account, set SpanSet) error {
				ctx := tracestore.WithAccount(t.Context(), a)
				_, err := VisitGroups(ctx, set, id, func(int, tracestore.Span) error { return nil }, store.traces[0].Spans)
				return err
			},
			"Find": func(a tracestore.Account, set SpanSet) error {
				res, err := Find(tracestore.WithAccount(t.Context(), a), store, tracestore.Query{}, set, tracestore.WantIDs)
				if err != nil {
					return err
				}
				for _, err := range res.All {
					if err != nil {
						return err
					}
				}
				return nil
			},
			"AggregateSet": func(a tracestore.Account, set SpanSet) error {
				_, err := AggregateSet(tracestore.WithAccount(t.Context(), a), store, tracestore.Query{}, set, SetAggregation{})
				return err
			},
		} {
			var few, many account
			if err := run(&few, sets.few); err != nil || few.used != 0 {
				t.Errorf("%s, %s: %d bytes are still reserved, %v", name, method, few.used, err)
			}
			if err := run(&many, sets.many); err != nil || many.used != 0 {
				t.Errorf("%s, %s: %d bytes are still reserved, %v", name, method, many.used, err)
			}
			if more := many.most - few.most; more < spans*sets.perSpan {
				t.Errorf("%s, %s: %d bytes, then %d more, want at least %d", name, method, few.most, more, spans*sets.perSpan)
			}
			if err := run(&fullAccount{limit: few.most}, sets.many); !tracestore.IsOutOfMemory(err) {
				t.Errorf("%s, %s with %d bytes: %v, want out of memory", name, method, few.most, err)
			}
		}
	}
}
