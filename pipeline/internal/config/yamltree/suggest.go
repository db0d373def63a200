package yamltree

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxCandidates is the maximum number of candidates in a message, maxCompared the maximum number
// that are compared.
const (
	maxCandidates = 20
	maxCompared   = 200
)

// Suggest returns the end of a message about an unknown word: `; did you mean "x"?` if a candidate
// is similar, otherwise the list of candidates after label.
func Suggest(word string, candidates []string, label string) string {
	candidates = slices.Sorted(slices.Values(candidates))
	best, distance := "", 1+len(word)/4
	for _, c := range candidates[:min(len(candidates), maxCompared)] {
		if d := editDistance(word, c); d <= distance && (best == "" || d < distance) {
			best, distance = c, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf("; did you mean %q?", best)
	case len(candidates) == 0:
		return ""
	case len(candidates) > maxCandidates+1: // a single candidate is no longer than "1 more"
		return fmt.Sprintf("; %s: %s and %d more", label, strings.Join(candidates[:maxCandidates], ", "), len(candidates)-maxCandidates)
	}
	return fmt.Sprintf("; %s: %s", label, strings.Join(candidates, ", "))
}

// Nearest returns at most n candidates that are most similar to a word, the nearest first, and the
// edit distance of the first one. Only the first one may differ in more than half of the word.
func Nearest(word string, candidates []string, n int) (nearest []string, distance int) {
	distances := make(map[string]int, len(candidates))
	for _, c := range candidates {
		distances[c] = editDistance(word, c)
	}
	nearest = slices.SortedFunc(maps.Keys(distances), func(a, b string) int {
		return cmp.Or(cmp.Compare(distances[a], distances[b]), cmp.Compare(a, b))
	})
	if len(nearest) == 0 {
		return nil, 0
	}
	keep := 1
	for keep < min(n, len(nearest)) && distances[nearest[keep]] <= 1+len(word)/2 {
		keep++
	}
	return nearest[:keep], distances[nearest[0]]
}

// editDistance returns the number of insertions, deletions, replacements and swaps of adjacent
// bytes between two words (optimal string alignment).
func editDistance(a, b string) int {
	const long = 64
	if len(a) > long || len(b) > long {
		return long
	}
	var rows [long + 1][long + 1]uint8 // not allocated: called for every known name at start
	for i := range len(a) + 1 {
		rows[i][0] = uint8(i)
	}
	for j := range len(b) + 1 {
		rows[0][j] = uint8(j)
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := uint8(1)
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return int(rows[len(a)][len(b)])
}
