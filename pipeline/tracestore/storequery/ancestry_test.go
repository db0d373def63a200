package storequery

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestAncestry compares relations with a walk from each span, in random trees and cycles.
func TestAncestry(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		parents := make([]int32, 1+r.IntN(12))
		for i := range parents {
			if parents[i] = r.Int32N(int32(len(parents))+2) - 2; parents[i] == int32(i) {
				parents[i] = root // no span is its own parent
			}
		}
		some := func() (spans []int32) {
			for i := range parents {
				if r.IntN(3) == 0 {
					spans = append(spans, int32(i))
				}
			}
			return spans
		}
		spans, set := some(), some()
		var below, above []int32
		for _, s := range spans {
			if slices.ContainsFunc(set, func(o int32) bool { return isAncestor(parents, o, s) }) {
				below = append(below, s)
			}
			if slices.ContainsFunc(set, func(o int32) bool { return isAncestor(parents, s, o) }) {
				above = append(above, s)
			}
		}
		var a ancestry
		a.number(parents)
		if got := a.haveAncestor(spans, set); !slices.Equal(got, below) {
			t.Fatalf("parents %d: of %d, %d have an ancestor in %d, want %d", parents, spans, got, set, below)
		}
		if got := a.haveDescendant(spans, set); !slices.Equal(got, above) {
			t.Fatalf("parents %d: of %d, %d have a descendant in %d, want %d", parents, spans, got, set, above)
		}
	}
}

func isAncestor(parents []int32, ancestor, span int32) bool {
	if ancestor == span {
		return false
	}
	at := span
	for range parents {
		if at = parents[at]; at < 0 || at == ancestor {
			return at == ancestor
		}
	}
	return false
}
