package storequery

import "slices"

// ancestry finds spans with certain ancestors. It visits each span once, even in deep traces.
type ancestry struct {
	out   []bool
	state []uint8
	path  []int32
}

// The states of a span.
const (
	unvisited uint8 = iota
	onPath
	visited
)

// descendantsOf reports for each span whether one of its ancestors is in set. A span is not its own
// ancestor.
func (a *ancestry) descendantsOf(set []bool, parents []int32) []bool {
	a.out = append(a.out[:0], make([]bool, len(parents))...)
	a.state = append(a.state[:0], make([]uint8, len(parents))...)
	for i := range parents {
		a.path = a.path[:0]
		at := int32(i)
		for ; at >= 0 && a.state[at] == unvisited; at = parents[at] {
			a.state[at] = onPath
			a.path = append(a.path, at)
		}
		if at >= 0 && a.state[at] == onPath {
			a.resolveCycle(slices.Index(a.path, at), set)
		}
		for _, s := range slices.Backward(a.path) {
			p := parents[s]
			a.out[s] = p >= 0 && (set[p] || a.out[p])
			a.state[s] = visited
		}
	}
	return a.out
}

// resolveCycle sets the result for spans that are ancestors of each other: the spans on the path,
// starting at index from.
func (a *ancestry) resolveCycle(from int, set []bool) {
	cycle, n := a.path[from:], 0
	for _, s := range cycle {
		if set[s] {
			n++
		}
	}
	for _, s := range cycle {
		a.out[s] = n > 1 || n == 1 && !set[s]
		a.state[s] = visited
	}
	a.path = a.path[:from]
}

// ancestorsOf reports for each span whether it is an ancestor of a span in set. A span is not its
// own ancestor.
func (a *ancestry) ancestorsOf(set []bool, parents []int32) []bool {
	a.out = append(a.out[:0], make([]bool, len(parents))...)
	children, below := make([]int, len(parents)), make([]int, len(parents)) // below: spans in set
	for _, p := range parents {
		if p >= 0 {
			children[p]++
		}
	}
	count := func(i int32) int {
		if set[i] {
			return below[i] + 1
		}
		return below[i]
	}
	a.path = a.path[:0] // spans whose children are all counted
	for i := range parents {
		if children[i] == 0 {
			a.path = append(a.path, int32(i))
		}
	}
	for n := 0; n < len(a.path); n++ {
		i := a.path[n]
		a.out[i] = below[i] > 0
		if p := parents[i]; p >= 0 {
			below[p] += count(i)
			if children[p]--; children[p] == 0 {
				a.path = append(a.path, p)
			}
		}
	}
	for i := range parents { // the others are ancestors of each other
		if children[i] <= 0 {
			continue
		}
		total, first := 0, int32(i)
		for at := first; children[at] > 0; at = parents[at] {
			total += count(at)
			children[at] = -1
		}
		for at := first; children[at] < 0; at = parents[at] {
			own := 0
			if set[at] {
				own = 1
			}
			a.out[at], children[at] = total > own, 0
		}
	}
	return a.out
}
