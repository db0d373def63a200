package explain

import (
	"cmp"
	"math"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Limits of the list of shapes.
const (
	// maxShapeLines is the maximum number of lines.
	maxShapeLines = 8
	// minPathTraces is the minimum number of traces with a call path or an operation. Rarer ones
	// cannot differ significantly; testing them would only hide others.
	minPathTraces = 5
	// minShapeScore is the minimum score of a line.
	minShapeScore = 0.05
	// minCallRatio is the minimum factor by which the calls per call of the caller differ.
	// Otherwise, only the caller differs.
	minCallRatio = 1.25
)

// ShapeLine is a call path that is more or less frequent in selected traces.
type ShapeLine struct {
	Path          int // index in PathProfile.Paths
	Service, Name string
	Kind          int32
	// Selected and Rest are the shares of traces that have the path, and the mean number of calls
	// of all traces of the set.
	Selected, Rest PathFrequency
	// Score is how much the path distinguishes selected traces, from -1 (only the rest has it) to 1
	// (only selected traces have it, and all of them).
	Score float64
	// Below is the number of call paths below this one that differ as well.
	Below int
	// Probability is the p-value: the probability of a difference of at least this size by chance.
	Probability float64
}

// PathFrequency says how often traces have a call path.
type PathFrequency struct{ Traces, Calls float64 }

// RankShape returns the call paths that selected traces have more or less often than the rest. More
// frequent paths come first; within these groups, paths are sorted by absolute score. Paths below a
// listed path are omitted unless they differ from it. Significance is determined by a test on
// shares of traces or by Welch's test on the calls of each trace, with a false discovery rate of 1
// %. The result is empty if a set has fewer than minTraces traces.
func RankShape(p *tracestore.PathProfile) []ShapeLine {
	if p.Selected.Traces < minTraces || p.Rest.Traces < minTraces {
		return nil
	}
	var lines []ShapeLine
	var probabilities []float64
	for i := range p.Paths {
		if c := &p.Paths[i]; c.Selected.Traces+c.Rest.Traces >= minPathTraces {
			line := shapeLine(p, i)
			lines, probabilities = append(lines, line), append(probabilities, line.Probability)
		}
	}
	listed := make(map[int]int) // path: index of the line that covers it
	var chosen []ShapeLine
	for i, significant := range discoveries(probabilities, falseDiscoveryRate) {
		l := lines[i]
		if !significant || math.Abs(l.Score) < minShapeScore {
			continue
		}
		parent := p.Paths[l.Path].Parent
		if above, covered := listed[parent]; followsCaller(p, l.Path) {
			if covered {
				chosen[above].Below++
				listed[l.Path] = above
			}
			continue
		}
		listed[l.Path] = len(chosen)
		chosen = append(chosen, l)
	}
	slices.SortStableFunc(chosen, func(a, b ShapeLine) int {
		return cmp.Or(cmp.Compare(rank(b.Score > 0), rank(a.Score > 0)), cmp.Compare(math.Abs(b.Score), math.Abs(a.Score)))
	})
	return chosen[:min(len(chosen), maxShapeLines)]
}

func shapeLine(p *tracestore.PathProfile, at int) ShapeLine {
	c := &p.Paths[at]
	line := ShapeLine{Path: at, Service: c.Service, Name: c.Name, Kind: c.Kind,
		Selected: frequency(&c.Selected, &p.Selected), Rest: frequency(&c.Rest, &p.Rest)}
	presence := proportionTest(pair{int(c.Selected.Traces), int(c.Rest.Traces)}, pair{int(p.Selected.Traces), int(p.Rest.Traces)})
	calls := welchTest(p, float64(c.Selected.Calls), c.Selected.CallSquares, float64(c.Rest.Calls), c.Rest.CallSquares)
	line.Probability = min(2*presence, 2*calls, 1) // two tests
	line.Score = shapeScore(line.Selected, line.Rest)
	return line
}

func frequency(n *tracestore.PathCounts, set *tracestore.PathSet) PathFrequency {
	return PathFrequency{Traces: mean(float64(n.Traces), set), Calls: mean(float64(n.Calls), set)}
}

// shapeScore returns the larger of two differences: the difference of the shares of traces, and the
// relative difference of calls times the share of traces with the path.
func shapeScore(selected, rest PathFrequency) float64 {
	presence := selected.Traces - rest.Traces
	calls := (selected.Calls - rest.Calls) / max(selected.Calls, rest.Calls) * max(selected.Traces, rest.Traces)
	if math.Abs(calls) > math.Abs(presence) {
		return calls
	}
	return presence
}

// followsCaller reports whether a path differs only because its caller does: the calls per call of
// the caller are about the same in both sets, and so is the share of the caller's traces that have
// the path, or the caller is in one set only.
func followsCaller(p *tracestore.PathProfile, at int) bool {
	c := &p.Paths[at]
	if c.Parent < 0 {
		return false
	}
	caller := &p.Paths[c.Parent]
	if caller.Selected.Calls == 0 || caller.Rest.Calls == 0 {
		return true
	}
	selected := float64(c.Selected.Calls) / float64(caller.Selected.Calls)
	rest := float64(c.Rest.Calls) / float64(caller.Rest.Calls)
	has := shareOf(int(c.Selected.Traces), int(caller.Selected.Traces)) - shareOf(int(c.Rest.Traces), int(caller.Rest.Traces))
	return max(selected, rest) < minCallRatio*min(selected, rest) && math.Abs(has) < minShapeScore
}
