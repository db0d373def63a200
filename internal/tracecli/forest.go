package tracecli

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// forest is the spans of a trace as trees: usually one, more where parents are missing. Spans are known by their place in the trace.
type forest struct {
	trace *trace
	nodes []node
	order []int32 // all spans, the earliest first
	roots []int32
	shown int // how many spans are shown
	// hiddenFailures is how many spans with errors are not.
	hiddenFailures int
	uses           map[string]int // of ids that repeat, how often
}

// node is a span's place in its tree.
type node struct {
	parent   int32 // -1: none that is there
	children []int32
	depth    int
	shown    bool
	last     bool // of the children, or roots, that are shown
	hidden   int  // how many of the spans below it are not shown
	circle   int  // how many spans are in the circle of parents that was opened here
}

const nobody = -1

// newForest arranges the spans, and marks the first max of them, level by level, as shown.
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
	f.breakCircles()
	for _, i := range f.order {
		if p := f.nodes[i].parent; p != nobody {
			f.nodes[p].children = append(f.nodes[p].children, i)
		} else {
			f.roots = append(f.roots, i)
		}
	}
	f.choose(max)
	return f
}

// findParents takes, of several spans with the id of a parent, the earliest.
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
		f.nodes[i].parent = nobody
		if parent, there := byID[spans[i].parent]; there && spans[i].parent != "" {
			f.nodes[i].parent = parent
		}
	}
}

// breakCircles makes a root of the earliest span of each circle of parents.
func (f *forest) breakCircles() {
	const unseen, onWay, done = 0, 1, 2
	state := make([]uint8, len(f.nodes))
	for i := range f.nodes {
		var way []int32
		at := int32(i)
		for ; at != nobody && state[at] == unseen; at = f.nodes[at].parent {
			state[at] = onWay
			way = append(way, at)
		}
		if at != nobody && state[at] == onWay {
			f.openCircle(way[slices.Index(way, at):])
		}
		for _, w := range way {
			state[w] = done
		}
	}
}

func (f *forest) openCircle(circle []int32) {
	start := func(i int32) int64 { return f.trace.spans[i].start }
	first := slices.MinFunc(circle, func(a, b int32) int { return cmp.Or(cmp.Compare(start(a), start(b)), cmp.Compare(a, b)) })
	f.nodes[first].parent, f.nodes[first].circle = nobody, len(circle)
}

// choose marks what is shown, and counts below each shown span what is not.
func (f *forest) choose(max int) {
	levels := slices.Clone(f.roots) // all spans, parents before their children
	for at := 0; at < len(levels); at++ {
		n := &f.nodes[levels[at]]
		if n.parent != nobody {
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
		if p := f.nodes[i].parent; p != nobody {
			f.nodes[p].hidden += 1 + f.nodes[i].hidden
		}
	}
	f.markLast(f.roots)
	for i := range f.nodes {
		f.markLast(f.nodes[i].children)
	}
}

// markLast marks the last of those that are shown, which are the first of them.
func (f *forest) markLast(siblings []int32) {
	for _, i := range slices.Backward(siblings) {
		if f.nodes[i].shown {
			f.nodes[i].last = true
			return
		}
	}
}

// isOrphan says whether the span names a parent that is not there.
func (f *forest) isOrphan(i int32) bool {
	n := &f.nodes[i]
	return n.parent == nobody && n.circle == 0 && f.trace.spans[i].parent != ""
}

// notes returns what is odd about a span's place: in the tree, and in time, where it says what no clock can have seen.
func (f *forest) notes(i int32) (notes []string) {
	s, n := &f.trace.spans[i], &f.nodes[i]
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	switch {
	case f.isOrphan(i):
		note("its parent %s is not in the answer", clean(s.parent))
	case n.circle == 1:
		note("it names itself as its parent")
	case n.circle > 1:
		note("its parents make a circle of %d spans", n.circle)
	}
	if uses := f.uses[s.id]; uses > 1 {
		note("its id %s is that of %d spans", clean(s.id), uses)
	}
	switch {
	case s.start == 0:
		note("it has no start time")
	case n.parent != nobody && s.start < f.trace.spans[n.parent].start:
		early := time.Duration(f.trace.spans[n.parent].start-s.start) * time.Microsecond
		note("it starts %s before its parent: their clocks differ", short(early))
	}
	return notes
}

// walk calls visit for the spans that are shown, parents before children, in the order of their starts.
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
