package storetest

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// fullTrace is a trace with its summary and parents, for the evaluation of span sets.
type fullTrace struct {
	id      otlpdata.TraceID
	spans   []tracestore.Span
	parents []int // by span; -1 if there is none
}

// fullTraces returns the traces of a tenant.
func (o *oracle) fullTraces(tb testing.TB, tenant string) (out []fullTrace) {
	tb.Helper()
	for id, spans := range o.tenant(tenant).traces {
		if len(spans) == 0 {
			continue
		}
		sum := o.summary(tb, tenant, id)
		out = append(out, *newFullTrace(id, spans, &sum))
	}
	return out
}

// number sets the nested sets of all spans by walking the trees of the roots.
func (w *fullTrace) number() {
	nested := make([]tracestore.NestedSet, len(w.spans))
	n := int32(0)
	var walk func(span int, parent int32)
	walk = func(span int, parent int32) {
		n++
		nested[span] = tracestore.NestedSet{Left: n, Parent: parent}
		for i, p := range w.parents {
			if p == span {
				walk(i, nested[span].Left)
			}
		}
		n++
		nested[span].Right = n
	}
	for i := range w.spans {
		if w.isRoot(i) {
			walk(i, -1)
		}
		w.spans[i].Nested = func() tracestore.NestedSet { return nested[i] }
	}
}

func (w *fullTrace) isRoot(span int) bool {
	return w.parents[span] < 0 && w.spans[span].ParentID.IsZero()
}

// newFullTrace returns a trace whose spans know their summary and their relatives.
func newFullTrace(id otlpdata.TraceID, spans []tracestore.Span, sum *tracestore.Summary) *fullTrace {
	w := &fullTrace{id: id, spans: slices.Clone(spans)}
	slices.SortFunc(w.spans, compareSpans)
	for i := range w.spans {
		w.spans[i].Trace = sum
		w.parents = append(w.parents, parentOf(w.spans, i))
	}
	children := make(map[int]int)
	for _, parent := range w.parents {
		children[parent]++
	}
	for i := range w.spans {
		w.spans[i].Children = func() int { return children[i] }
		w.spans[i].Parent = func(f tracestore.Field) (v otlpdata.Value, ok bool) {
			if parent := w.parents[i]; parent >= 0 {
				return tracestore.ValueOf(f, w.spans[parent])
			}
			return v, false
		}
	}
	w.number()
	return w
}

func compareSpans(a, b tracestore.Span) int {
	if c := cmp.Or(cmp.Compare(a.Start, b.Start), bytes.Compare(a.SpanID[:], b.SpanID[:])); c != 0 {
		return c
	}
	x, _ := a.Duration()
	y, _ := b.Duration()
	return cmp.Or(cmp.Compare(a.Resource.Service, b.Resource.Service), cmp.Compare(a.Kind, b.Kind),
		bytes.Compare(a.ParentID[:], b.ParentID[:]), cmp.Compare(x, y), bytes.Compare(a.Raw, b.Raw),
		bytes.Compare(a.Resource.Raw, b.Resource.Raw), bytes.Compare(a.Scope.Raw, b.Scope.Raw),
		cmp.Compare(a.Resource.SchemaURL, b.Resource.SchemaURL), cmp.Compare(a.Scope.SchemaURL, b.Scope.SchemaURL))
}

// parentOf resolves a parent by the rules of tracestore.Edges, but without the limit on
// spans that share an id.
func parentOf(spans []tracestore.Span, self int) int {
	server := func(s tracestore.Span) bool {
		return s.Kind == int32(ptrace.SpanKindServer) || s.Kind == int32(ptrace.SpanKindConsumer)
	}
	s := spans[self]
	first := func(id otlpdata.SpanID, accept func(o tracestore.Span) bool) int {
		for i, o := range spans {
			if i != self && o.SpanID == id && accept(o) {
				return i
			}
		}
		return -1
	}
	parent := -1
	if server(s) {
		parent = first(s.SpanID, func(o tracestore.Span) bool { return !server(o) })
	}
	if s.ParentID.IsZero() {
		return parent
	}
	for _, accept := range []func(o tracestore.Span) bool{
		func(o tracestore.Span) bool { return o.Resource.Service == s.Resource.Service }, server, all[tracestore.Span],
	} {
		if parent < 0 {
			parent = first(s.ParentID, accept)
		}
	}
	return parent
}

// all is a predicate that is true for everything.
func all[T any](T) bool { return true }

// selected evaluates a set on the whole trace by its definition.
func (w *fullTrace) selected(set storequery.SpanSet) map[int]bool {
	group := make([]int, len(w.spans))
	for i := range group {
		group[i] = i
	}
	return w.selectedOf(set, group)
}

// selectedOf evaluates a set on a group of spans.
func (w *fullTrace) selectedOf(set storequery.SpanSet, group []int) map[int]bool {
	out := make(map[int]bool)
	switch s := set.(type) {
	case nil:
		return w.selectedOf(storequery.Select{}, group)
	case storequery.Select:
		for _, i := range group {
			if tracestore.Match(s.Where, w.spans[i]) {
				out[i] = true
			}
		}
	case storequery.And:
		left, right := w.selectedOf(s.Left, group), w.selectedOf(s.Right, group)
		if len(left) > 0 && len(right) > 0 {
			addAll(out, left, right)
		}
	case storequery.Or:
		addAll(out, w.selectedOf(s.Left, group), w.selectedOf(s.Right, group))
	case storequery.Pipeline:
		for _, g := range w.groups(s, group) {
			for _, i := range g {
				out[i] = true
			}
		}
	case storequery.Relation:
		left, right := w.selectedOf(s.Left, group), w.selectedOf(s.Right, group)
		for r := range right {
			related := false
			for l := range left {
				if w.related(s.Kind, l, r) {
					related = true
					if s.Mode == storequery.Both {
						out[l] = true
					}
				}
			}
			if related != (s.Mode == storequery.Unrelated) {
				out[r] = true
			}
		}
	}
	return out
}

// groups returns the groups that a set returns of a group.
func (w *fullTrace) groups(set storequery.SpanSet, of []int) [][]int {
	p, ok := set.(storequery.Pipeline)
	if !ok {
		return [][]int{slices.Sorted(maps.Keys(w.selectedOf(set, of)))}
	}
	groups := w.groups(p.Set, of)
	for _, stage := range p.Stages {
		var next [][]int
		for _, g := range groups {
			next = append(next, w.stage(stage, g)...)
		}
		if _, ok := stage.(storequery.Coalesce); ok {
			next = [][]int{slices.Concat(next...)}
		}
		groups = slices.DeleteFunc(next, func(g []int) bool { return len(g) == 0 })
	}
	return groups
}

func (w *fullTrace) stage(stage storequery.Stage, g []int) (groups [][]int) {
	switch s := stage.(type) {
	case storequery.Refine:
		return w.groups(s.Set, g)
	case storequery.GroupBy:
		byValue := make(map[string][]int)
		for _, i := range g {
			v, _ := tracestore.ValueOf(s.By, w.spans[i])
			text := fmt.Sprint(v.Kind(), v.AsString())
			byValue[text] = append(byValue[text], i)
		}
		return slices.Collect(maps.Values(byValue))
	case storequery.Filter:
		number := func(o tracestore.Operand) (n float64, ok bool) { return w.aggregate(o, g) }
		left, ok1 := number(s.Left)
		right, ok2 := number(s.Right)
		if !ok1 || !ok2 || !tracestore.CompareValues(s.Op, otlpdata.DoubleValue(left), otlpdata.DoubleValue(right)) {
			return nil
		}
	}
	return [][]int{g}
}

// aggregate returns a constant, or the value of an aggregate for a group.
func (w *fullTrace) aggregate(o tracestore.Operand, g []int) (n float64, ok bool) {
	toNumber := func(v otlpdata.Value) (float64, bool) {
		return v.Double() + float64(v.Int()), v.Kind() == otlpdata.ValueInt || v.Kind() == otlpdata.ValueDouble
	}
	a, isAggregate := o.(storequery.Aggregate)
	if !isAggregate {
		return toNumber(o.(tracestore.Constant).Value)
	}
	if a.Func == storequery.Count {
		return float64(len(g)), true
	}
	var values []float64
	for _, i := range g {
		v, _ := tracestore.ValueOf(a.Of, w.spans[i])
		if n, ok := toNumber(v); ok {
			values = append(values, n)
		}
	}
	if len(values) == 0 {
		return 0, false
	}
	for _, v := range values {
		n += v
	}
	switch a.Func {
	case storequery.Min:
		return slices.Min(values), true
	case storequery.Max:
		return slices.Max(values), true
	case storequery.Avg:
		return n / float64(len(values)), true
	}
	return n, true
}

// related reports whether a span r is a child, an ancestor and so on of a span l.
func (w *fullTrace) related(kind storequery.RelationKind, l, r int) bool {
	switch kind {
	case storequery.Descendant:
		return l != r && w.isDescendant(r, map[int]bool{l: true})
	case storequery.Ancestor:
		return w.related(storequery.Descendant, r, l)
	case storequery.Child:
		return w.parents[r] == l
	case storequery.Parent:
		return w.parents[l] == r
	}
	return l != r && (w.parents[l] >= 0 && w.parents[l] == w.parents[r] || w.isRoot(l) && w.isRoot(r))
}

func addAll(to map[int]bool, from ...map[int]bool) {
	for _, m := range from {
		for i := range m {
			to[i] = true
		}
	}
}

func (w *fullTrace) isDescendant(span int, ancestors map[int]bool) bool {
	seen := map[int]bool{span: true}
	for at := w.parents[span]; at >= 0 && !seen[at]; at = w.parents[at] {
		if ancestors[at] {
			return true
		}
		seen[at] = true
	}
	return false
}

// findSet evaluates a query with a span set by its definition.
func findSet(traces []fullTrace, q tracestore.Query, set storequery.SpanSet) []tracestore.Result {
	from, to, ok := q.Window()
	var out []tracestore.Result
	for i := range traces {
		w := &traces[i]
		r, found := tracestore.Result{ID: w.id}, false
		for at := range w.selected(set) {
			if s := w.spans[at]; ok && s.Start >= from && s.Start <= to && tracestore.Match(q.Where, s) {
				r.Start, found = max(r.Start, s.Start), true
			}
		}
		if found && (!q.After.Set || newestFirst(tracestore.Result{ID: q.After.ID, Start: q.After.Start}, r) < 0) {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, newestFirst)
	if q.Limit > 0 && len(out) > q.Limit {
		out = out[:q.Limit]
	}
	return out
}
