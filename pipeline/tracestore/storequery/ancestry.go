package storequery

import (
	"cmp"
	"slices"
)

// ancestry answers which spans of a trace are ancestors of others. It numbers the spans once, such
// that the numbers of a span and its descendants are one range. Spans that are ancestors of each
// other share a range.
type ancestry struct {
	first, end []int32 // by span: its number, and the end of its range
}

func (a *ancestry) reset() { a.first, a.end = a.first[:0], a.end[:0] }

// number numbers all spans, unless they are already numbered. It visits each span once, even in
// deep traces.
func (a *ancestry) number(parents []int32) {
	if len(a.first) > 0 {
		return
	}
	n := len(parents)
	a.first, a.end = slices.Grow(a.first, n)[:n], slices.Grow(a.end, n)[:n]
	size, children := make([]int32, n), make([]int32, n) // size: of the range; children: not counted yet
	for i, p := range parents {
		if size[i] = 1; p >= 0 {
			children[p]++
		}
	}
	order := make([]int32, 0, n) // children before their parents; without cycles
	for i := range parents {
		if children[i] == 0 {
			order = append(order, int32(i))
		}
	}
	for at := 0; at < len(order); at++ {
		if p := parents[order[at]]; p >= 0 {
			size[p] += size[order[at]]
			if children[p]--; children[p] == 0 {
				order = append(order, p)
			}
		}
	}
	next := make([]int32, n) // by span: the number of its next child
	free := int32(0)
	for i := range parents { // spans that are still waiting for a child are ancestors of each other
		if children[i] <= 0 {
			continue
		}
		first := free
		for at := int32(i); children[at] > 0; at = parents[at] {
			next[at], free, children[at] = free+1, free+size[at], -1
		}
		for at := int32(i); children[at] < 0; at = parents[at] {
			a.first[at], a.end[at], children[at] = first, free, 0
		}
	}
	for _, span := range slices.Backward(order) {
		from := &free
		if p := parents[span]; p >= 0 {
			from = &next[p]
		}
		a.first[span], next[span] = *from, *from+1
		*from += size[span]
		a.end[span] = *from
	}
}

// sorted returns spans in the order of their numbers.
func (a *ancestry) sorted(spans []int32) []int32 {
	out := slices.Clone(spans)
	slices.SortFunc(out, func(x, y int32) int { return cmp.Compare(a.first[x], a.first[y]) })
	return out
}

// haveAncestor returns the spans with an ancestor in a set. A span is not its own ancestor.
func (a *ancestry) haveAncestor(spans, set []int32) (out []int32) {
	byNumber := a.sorted(set)
	at, end := 0, int32(0) // end: of the ranges that begin before the number of the span
	for _, span := range a.sorted(spans) {
		for ; at < len(byNumber) && a.first[byNumber[at]] < a.first[span]; at++ {
			end = max(end, a.end[byNumber[at]])
		}
		others := byNumber[at:]
		if len(others) > 0 && others[0] == span {
			others = others[1:]
		}
		if end > a.first[span] || len(others) > 0 && a.first[others[0]] == a.first[span] {
			out = append(out, span)
		}
	}
	slices.Sort(out)
	return out
}

// haveDescendant returns the spans with a descendant in a set. A span is not its own descendant.
func (a *ancestry) haveDescendant(spans, set []int32) (out []int32) {
	byNumber := a.sorted(set)
	find := func(number int32) int {
		at, _ := slices.BinarySearchFunc(byNumber, number, func(s, number int32) int { return cmp.Compare(a.first[s], number) })
		return at
	}
	for _, span := range spans {
		n := find(a.end[span]) - find(a.first[span])
		if _, own := slices.BinarySearch(set, span); own {
			n--
		}
		if n > 0 {
			out = append(out, span)
		}
	}
	return out
}
