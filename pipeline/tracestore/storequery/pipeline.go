package storequery

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Pipeline passes the spans of Set through stages, first as one group, or as the groups of Set if
// that is a Pipeline. It selects the spans of the groups that the last stage returns. A group
// without spans ends.
type Pipeline struct {
	Set    SpanSet
	Stages []Stage
}

// Stage is a stage of a [Pipeline]: [Refine], [GroupBy], [Coalesce] or [Filter].
type Stage interface{ isStage() }

// Refine evaluates a set on each group alone, as if the trace had no other spans. Only ancestors of
// its spans may be in other groups.
type Refine struct{ Set SpanSet }

// GroupBy divides each group into groups of spans with the same value. Spans without a value are
// one group.
type GroupBy struct{ By tracestore.Operand }

// Coalesce joins all groups.
type Coalesce struct{}

// Filter keeps the groups for which a comparison holds. Operands are constants, aggregates and
// arithmetic with them.
type Filter struct {
	Op          tracestore.Op
	Left, Right tracestore.Operand
}

// Aggregate is a number that is calculated from the spans of a group, or, if Over is not nil, from
// those of them that Over selects. Spans for which Of has no numeric value do not count. Without
// such spans only Count has a value.
type Aggregate struct {
	Func AggregateFunc
	Of   tracestore.Operand // nil for Count
	Over SpanSet
}

// AggregateFunc is the function of an [Aggregate].
type AggregateFunc string

// The functions.
const (
	Count AggregateFunc = "count"
	Avg   AggregateFunc = "avg"
	Min   AggregateFunc = "min"
	Max   AggregateFunc = "max"
	Sum   AggregateFunc = "sum"
)

func (Pipeline) isSpanSet() {}
func (Refine) isStage()     {}
func (GroupBy) isStage()    {}
func (Coalesce) isStage()   {}
func (Filter) isStage()     {}

// IsOperand implements tracestore.Operand.
func (Aggregate) IsOperand() {}

// GroupValue is a number or value that a stage calculated for a group: a [GroupBy] or an
// [Aggregate], and its value. The value of spans without a value is empty.
type GroupValue struct {
	Of    any
	Value otlpdata.Value
}

// spanGroup is a group of spans: their indexes in ascending order.
type spanGroup struct {
	spans  []int32
	values []GroupValue
}

// mapSet returns a set with f applied to its parts.
func mapSet(set SpanSet, f func(SpanSet) SpanSet) SpanSet {
	switch s := set.(type) {
	case And:
		return And{f(s.Left), f(s.Right)}
	case Or:
		return Or{f(s.Left), f(s.Right)}
	case Relation:
		s.Left, s.Right = f(s.Left), f(s.Right)
		return s
	case Pipeline:
		out := Pipeline{Set: f(s.Set)}
		for _, stage := range s.Stages {
			switch t := stage.(type) {
			case Refine:
				stage = Refine{f(t.Set)}
			case Filter:
				t.Left, t.Right = mapAggregates(t.Left, f), mapAggregates(t.Right, f)
				stage = t
			}
			out.Stages = append(out.Stages, stage)
		}
		return out
	}
	return set
}

func mapAggregates(o tracestore.Operand, f func(SpanSet) SpanSet) tracestore.Operand {
	switch o := o.(type) {
	case tracestore.Arithmetic:
		o.Left, o.Right = mapAggregates(o.Left, f), mapAggregates(o.Right, f)
		return o
	case Aggregate:
		if o.Over != nil {
			o.Over = f(o.Over)
		}
		return o
	}
	return o
}

// stageOperands yields the operands of a stage that are evaluated on spans, in the order of
// evaluation, and the sets of its aggregates.
func stageOperands(stage Stage, operand func(tracestore.Operand), set func(SpanSet)) {
	var aggregates func(o tracestore.Operand)
	aggregates = func(o tracestore.Operand) {
		switch o := o.(type) {
		case tracestore.Arithmetic:
			aggregates(o.Left)
			aggregates(o.Right)
		case Aggregate:
			if o.Over != nil {
				set(o.Over)
			}
			operand(o.Of)
		}
	}
	switch t := stage.(type) {
	case Refine:
		set(t.Set)
	case GroupBy:
		operand(t.By)
	case Filter:
		aggregates(t.Left)
		aggregates(t.Right)
	}
}

// groupsOf returns the groups that a part of the set selects of a group. Conditions and operands
// are counted by nextCond and nextOperand, as in selectedBy.
func (m *setMatcher) groupsOf(ctx context.Context, set SpanSet, of spanGroup) []spanGroup {
	var spans []int32
	switch s := set.(type) {
	case And:
		left, right := m.spansOf(ctx, s.Left, of), m.spansOf(ctx, s.Right, of)
		if len(left) > 0 && len(right) > 0 {
			spans = uniteSorted(left, right)
		}
	case Or:
		spans = uniteSorted(m.spansOf(ctx, s.Left, of), m.spansOf(ctx, s.Right, of))
	case Relation:
		left, right := m.spansOf(ctx, s.Left, of), m.spansOf(ctx, s.Right, of)
		spans = m.related(s, left, right)
	case Pipeline:
		groups := m.groupsOf(ctx, s.Set, of)
		for _, stage := range s.Stages {
			groups = m.runStage(ctx, stage, groups)
		}
		return groups
	default:
		holds := m.truth[m.nextCond]
		m.nextCond++
		for _, i := range of.spans {
			if holds[i] {
				spans = append(spans, i)
			}
		}
	}
	if len(spans) == 0 {
		return nil
	}
	return []spanGroup{{spans, of.values}}
}

// spansOf returns the spans of all groups that a part of the set selects.
func (m *setMatcher) spansOf(ctx context.Context, set SpanSet, of spanGroup) (spans []int32) {
	groups := m.groupsOf(ctx, set, of)
	if len(groups) == 1 {
		return groups[0].spans
	}
	for _, g := range groups {
		spans = append(spans, g.spans...)
	}
	slices.Sort(spans)
	return spans
}

func uniteSorted(a, b []int32) []int32 {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

func indexes(mask []bool) (spans []int32) {
	for i, in := range mask {
		if in {
			spans = append(spans, int32(i))
		}
	}
	return spans
}

func (m *setMatcher) runStage(ctx context.Context, stage Stage, groups []spanGroup) (out []spanGroup) {
	cond, operand := m.nextCond, m.nextOperand
	if len(groups) == 0 {
		groups = []spanGroup{{}} // evaluated only to count conditions and operands
	}
	for _, g := range groups {
		if ctx.Err() != nil {
			return nil // the caller returns the error
		}
		m.nextCond, m.nextOperand = cond, operand
		switch t := stage.(type) {
		case Refine:
			out = append(out, m.groupsOf(ctx, t.Set, g)...)
		case GroupBy:
			out = append(out, m.divide(t, g)...)
		case Filter:
			if g, ok := m.filter(ctx, t, g); ok && len(g.spans) > 0 {
				out = append(out, g)
			}
		case Coalesce:
			if out == nil {
				out = []spanGroup{{}}
			}
			out[0].spans = append(out[0].spans, g.spans...)
		}
	}
	if _, ok := stage.(Coalesce); ok {
		slices.Sort(out[0].spans)
		if out[0].spans = slices.Compact(out[0].spans); len(out[0].spans) == 0 {
			return nil
		}
	}
	return out
}

// divide divides a group by the values of an operand. The groups are in the order of the
// values.
func (m *setMatcher) divide(by GroupBy, g spanGroup) (out []spanGroup) {
	values := m.values[m.nextOperand]
	m.nextOperand++
	type key struct {
		kind otlpdata.ValueKind
		text string
	}
	at := make(map[key]int)
	for _, i := range g.spans {
		v := values[i]
		k := key{v.Kind(), v.AsString()}
		n, known := at[k]
		if !known {
			n = len(out)
			at[k] = n
			out = append(out, spanGroup{values: append(slices.Clip(g.values), GroupValue{by, v})})
		}
		out[n].spans = append(out[n].spans, i)
	}
	slices.SortStableFunc(out, func(a, b spanGroup) int {
		x, y := a.values[len(a.values)-1].Value, b.values[len(b.values)-1].Value
		return cmp.Or(cmp.Compare(x.Kind(), y.Kind()), strings.Compare(x.AsString(), y.AsString()))
	})
	return out
}

// filter reports whether a filter holds for a group, and adds the values of its aggregates. No
// other group uses the rest of the capacity of g.values, see divide.
func (m *setMatcher) filter(ctx context.Context, f Filter, g spanGroup) (spanGroup, bool) {
	aggregate := func(o tracestore.Operand) (otlpdata.Value, bool) {
		a := o.(Aggregate)
		v, ok := m.aggregate(ctx, a, g)
		if ok {
			g.values = append(g.values, GroupValue{a, v})
		}
		return v, ok
	}
	left, ok1 := computeAll(f.Left, aggregate)
	right, ok2 := computeAll(f.Right, aggregate)
	return g, ok1 && ok2 && tracestore.CompareValues(f.Op, left, right)
}

// computeAll is tracestore.Compute, but evaluates the right side of arithmetic even if the left
// side has no value.
func computeAll(o tracestore.Operand, value func(tracestore.Operand) (otlpdata.Value, bool)) (v otlpdata.Value, ok bool) {
	a, isArithmetic := o.(tracestore.Arithmetic)
	if !isArithmetic {
		return tracestore.Compute(o, value)
	}
	left, ok1 := computeAll(a.Left, value)
	right, ok2 := computeAll(a.Right, value)
	if !ok1 || !ok2 {
		return v, false
	}
	a.Left, a.Right = tracestore.Constant{Value: left}, tracestore.Constant{Value: right}
	return tracestore.Compute(a, value)
}

func (m *setMatcher) aggregate(ctx context.Context, a Aggregate, g spanGroup) (v otlpdata.Value, ok bool) {
	spans := g.spans
	if a.Over != nil {
		spans = m.spansOf(ctx, a.Over, g)
	}
	values := m.values[m.nextOperand]
	m.nextOperand++
	if a.Func == Count {
		return otlpdata.IntValue(int64(len(spans))), true
	}
	n := 0
	for _, i := range spans {
		x := values[i]
		switch k := x.Kind(); {
		case k != otlpdata.ValueInt && k != otlpdata.ValueDouble:
			continue
		case n == 0, a.Func == Min && tracestore.CompareValues(tracestore.Lt, x, v),
			a.Func == Max && tracestore.CompareValues(tracestore.Gt, x, v):
			v = x
		case a.Func == Sum || a.Func == Avg:
			v, _ = tracestore.Compute(tracestore.Arithmetic{Op: '+',
				Left: tracestore.Constant{Value: v}, Right: tracestore.Constant{Value: x}}, nil)
		}
		n++
	}
	if a.Func == Avg && n > 0 {
		return tracestore.Compute(tracestore.Arithmetic{Op: '/', Left: tracestore.Constant{Value: v},
			Right: tracestore.Constant{Value: otlpdata.DoubleValue(float64(n))}}, nil)
	}
	return v, n > 0
}
