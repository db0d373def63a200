package traces

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// forest holds the spans of a trace as trees: usually one, more if parents are missing. Spans are
// identified by their index in the trace.
type forest struct {
	trace *trace
	nodes []node
	order []int32 // all spans, the earliest first
	roots []int32
	shown int // number of shown spans
	// hiddenFailures is the number of spans with errors that are not shown.
	hiddenFailures int
	uses           map[string]int // number of spans by id; only duplicate ids
}

// node is a span's position in its tree.
type node struct {
	parent   int32 // noParent if it is missing
	children []int32
	depth    int
	shown    bool
	last     bool // last shown child of its parent, or last shown root
	hidden   int  // number of descendants that are not shown
	cycle    int  // number of spans in the cycle of parents that was opened here
}

const noParent = -1

// newForest builds the trees, and marks the first max spans, level by level, as shown.
func newForest(t *trace, max int) *forest {
	f := &forest{trace: t, nodes: make([]node, len(t.spans)), order: make([]int32, len(t.spans))}
	for i := range f.order {
		f.order[i] = int32(i)
	}
	slices.SortStableFunc(f.order, func(a, b int32) int {
		x, y := &t.spans[a], &t.spans[b]
		return cmp.Or(cmp.Compare(x.start, y.start), cmp.Compare(y.duration, x.duration))
	})
	f.findParents()
	f.breakCycles()
	for _, i := range f.order {
		if p := f.nodes[i].parent; p != noParent {
			f.nodes[p].children = append(f.nodes[p].children, i)
		} else {
			f.roots = append(f.roots, i)
		}
	}
	f.choose(max)
	return f
}

// findParents sets the parent of each span. If several spans have the id of the parent, it takes
// the earliest.
func (f *forest) findParents() {
	spans := f.trace.spans
	byID := make(map[string]int32, len(spans))
	f.uses = make(map[string]int)
	for _, i := range f.order {
		id := spans[i].id
		if _, again := byID[id]; again {
			f.uses[id] = max(f.uses[id], 1) + 1
		} else {
			byID[id] = i
		}
	}
	for i := range spans {
		f.nodes[i].parent = noParent
		if parent, there := byID[spans[i].parent]; there && spans[i].parent != "" {
			f.nodes[i].parent = parent
		}
	}
}

// breakCycles makes the earliest span of each cycle of parents a root.
func (f *forest) breakCycles() {
	const unseen, inProgress, done = 0, 1, 2
	state := make([]uint8, len(f.nodes))
	for i := range f.nodes {
		var path []int32
		at := int32(i)
		for ; at != noParent && state[at] == unseen; at = f.nodes[at].parent {
			state[at] = inProgress
			path = append(path, at)
		}
		if at != noParent && state[at] == inProgress {
			f.openCycle(path[slices.Index(path, at):])
		}
		for _, w := range path {
			state[w] = done
		}
	}
}

func (f *forest) openCycle(cycle []int32) {
	start := func(i int32) int64 { return f.trace.spans[i].start }
	first := slices.MinFunc(cycle, func(a, b int32) int { return cmp.Or(cmp.Compare(start(a), start(b)), cmp.Compare(a, b)) })
	f.nodes[first].parent, f.nodes[first].cycle = noParent, len(cycle)
}

// choose marks the shown spans, and counts the hidden descendants of each span.
func (f *forest) choose(max int) {
	levels := slices.Clone(f.roots) // all spans, parents before their children
	for at := 0; at < len(levels); at++ {
		n := &f.nodes[levels[at]]
		if n.parent != noParent {
			n.depth = f.nodes[n.parent].depth + 1
		}
		levels = append(levels, n.children...)
	}
	f.shown = min(max, len(levels))
	for _, i := range levels[:f.shown] {
		f.nodes[i].shown = true
	}
	for _, i := range slices.Backward(levels[f.shown:]) {
		if f.trace.spans[i].failed {
			f.hiddenFailures++
		}
		if p := f.nodes[i].parent; p != noParent {
			f.nodes[p].hidden += 1 + f.nodes[i].hidden
		}
	}
	f.markLast(f.roots)
	for i := range f.nodes {
		f.markLast(f.nodes[i].children)
	}
}

// markLast marks the last shown sibling. Shown siblings come before hidden ones.
func (f *forest) markLast(siblings []int32) {
	for _, i := range slices.Backward(siblings) {
		if f.nodes[i].shown {
			f.nodes[i].last = true
			return
		}
	}
}

// hasMissingParent reports whether the span has a parent that is not in the trace.
func (f *forest) hasMissingParent(i int32) bool {
	n := &f.nodes[i]
	return n.parent == noParent && n.cycle == 0 && f.trace.spans[i].parent != ""
}

// notes returns the inconsistencies of a span: of its position in the tree, and of its times.
func (f *forest) notes(i int32) (notes []string) {
	s, n := &f.trace.spans[i], &f.nodes[i]
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	switch {
	case f.hasMissingParent(i):
		note("parent %s is missing", clean(s.parent))
	case n.cycle == 1:
		note("span is its own parent")
	case n.cycle > 1:
		note("parents form a cycle of %d spans", n.cycle)
	}
	if uses := f.uses[s.id]; uses > 1 {
		note("id %s is used by %d spans", clean(s.id), uses)
	}
	switch {
	case s.start == 0:
		note("no start time")
	case n.parent != noParent && s.start < f.trace.spans[n.parent].start:
		early := time.Duration(f.trace.spans[n.parent].start-s.start) * time.Microsecond
		note("starts %s before its parent: clocks differ", short(early))
	}
	return notes
}

// walk calls visit for each shown span, parents before children, siblings in the order of their
// starts.
func (f *forest) walk(visit func(i int32) error) error {
	var stack []int32
	push := func(siblings []int32) {
		for _, i := range slices.Backward(siblings) {
			if f.nodes[i].shown {
				stack = append(stack, i)
			}
		}
	}
	push(f.roots)
	for len(stack) > 0 {
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if err := visit(i); err != nil {
			return err
		}
		push(f.nodes[i].children)
	}
	return nil
}
