// Package callpath finds the critical path of a trace, and compares the critical paths and call
// paths of two sets of traces. It is the reference implementation of [tracestore.PathProfiler]. It
// also merges traces into one tree.
//
//	tree.go     the tree of calls of a trace
//	critical.go the critical path, as the trace page of the web UI draws it
//	counter.go  sums over traces
//	waterfall.go when and how long the calls of each path run
//	profile.go  the traces that are examined, and how they are read
//	sample.go   a sample of the traces that match, spread over the window
//	verdict.go  which of them are selected
package callpath

import (
	"cmp"
	"math"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// SpanMemory is the approximate size in bytes of a span of an outline and its place in a [Tree],
// without its texts.
const SpanMemory = 480

// Tree is the tree of calls of a trace. The zero value is ready to use. A Tree can be reused for
// further traces. It is not safe for concurrent use.
//
// Parents are resolved as in [tracestore.Edges]. In a cycle of parents the first span has no
// parent. Times are as recorded, without clock correction. Spans without a start time start at the
// first start in the trace.
type Tree struct {
	spans      []tracestore.SummarySpan // by start and id
	start, end []uint64
	parent     []int32 // -1: none
	tops       []int32 // spans without parent
	roots      int     // number of spans in tops without a parent id
	first      []int32 // children of span i: children[first[i]:first[i+1]], by start and id
	children   []int32

	calls   []storequery.CallSpan
	parents storequery.ParentFinder
	state   []uint8
	path    []int32
	walk    walk
}

// Build makes t the tree of a trace. spans must not contain duplicates; Build sorts them and
// retains them until the next call.
func (t *Tree) Build(spans []tracestore.SummarySpan) {
	t.spans = spans
	for i := range spans {
		if k := spans[i].Kind; k < otlpdata.KindUnspecified || k > otlpdata.KindConsumer {
			spans[i].Kind = otlpdata.KindUnspecified
		}
	}
	slices.SortStableFunc(spans, func(a, b tracestore.SummarySpan) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), slices.Compare(a.ID[:], b.ID[:]), cmp.Compare(a.Service, b.Service),
			cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Duration, b.Duration), slices.Compare(a.Parent[:], b.Parent[:]))
	})
	t.setTimes()
	t.resolveParents()
	t.breakCycles()
	t.linkChildren()
}

// setTimes sets start and end.
func (t *Tree) setTimes() {
	begin := uint64(math.MaxUint64)
	for i := range t.spans {
		begin = min(begin, t.spans[i].Start-1) // 0 becomes the maximum
	}
	begin++
	t.start, t.end = t.start[:0], t.end[:0]
	for i := range t.spans {
		start := max(t.spans[i].Start, begin)
		t.start = append(t.start, start)
		t.end = append(t.end, start+min(t.spans[i].Duration, math.MaxUint64-start))
	}
}

func (t *Tree) resolveParents() {
	t.calls = t.calls[:0]
	for i := range t.spans {
		s := &t.spans[i]
		t.calls = append(t.calls, storequery.CallSpan{ID: s.ID, Parent: s.Parent, Start: s.Start, Service: s.Service, Kind: s.Kind})
	}
	t.parents.Index(t.calls) // keeps the order, because the calls are already sorted
	t.parent = t.parent[:0]
	for i := range t.spans {
		t.parent = append(t.parent, int32(max(t.parents.Parent(i), -1)))
	}
}

// breakCycles removes the parent of the first span of each cycle of parents.
func (t *Tree) breakCycles() {
	t.state = append(t.state[:0], make([]uint8, len(t.spans))...)
	for i := range t.spans {
		t.path = t.path[:0]
		at := int32(i)
		for ; at >= 0 && t.state[at] == unvisited; at = t.parent[at] {
			t.state[at] = onPath
			t.path = append(t.path, at)
		}
		if at >= 0 && t.state[at] == onPath {
			t.parent[slices.Min(t.path[slices.Index(t.path, at):])] = -1
		}
		for _, s := range t.path {
			t.state[s] = visited
		}
	}
}

// The states of a span.
const (
	unvisited uint8 = iota
	onPath
	visited
)

// linkChildren sets tops, roots, first and children.
func (t *Tree) linkChildren() {
	n := len(t.spans)
	t.tops, t.roots = t.tops[:0], 0
	t.first = append(t.first[:0], make([]int32, n+1)...)
	for i, p := range t.parent {
		if p >= 0 {
			t.first[p+1]++
			continue
		}
		t.tops = append(t.tops, int32(i))
		if t.spans[i].Parent.IsZero() {
			t.roots++
		}
	}
	for i := range n {
		t.first[i+1] += t.first[i]
	}
	t.children = append(t.children[:0], make([]int32, t.first[n])...)
	next := append([]int32(nil), t.first[:n]...)
	for i, p := range t.parent {
		if p >= 0 {
			t.children[next[p]] = int32(i)
			next[p]++
		}
	}
}

// childrenOf returns the children of a span, by start and id.
func (t *Tree) childrenOf(span int32) []int32 { return t.children[t.first[span]:t.first[span+1]] }
