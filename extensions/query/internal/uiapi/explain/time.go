package explain

import (
	"cmp"
	"math"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Limits of the list of times.
const (
	// maxTimeLines is the maximum number of lines, of operations and of call paths.
	maxTimeLines = 8
	// minTimeRatio is the minimum difference relative to the larger of the two means.
	minTimeRatio = 0.1
	// minTimeOfTrace is the minimum difference relative to the mean length of the rest's critical
	// paths. Smaller differences explain nothing.
	minTimeOfTrace = 0.01
	// minTimeOfDifference is the minimum difference relative to the difference of the mean lengths
	// of the critical paths. In slow traces, most operations take a little longer.
	minTimeOfDifference = 0.1
	// fewTimeLines is the maximum number of lines if none reaches this minimum.
	fewTimeLines = 3
)

// TimeRanking is the ranked list of times.
type TimeRanking struct {
	// Operations and Paths are the operations and call paths whose own time on the critical path
	// differs, the largest difference first.
	Operations, Paths []TimeLine
	// Differ is the number of operations that differ significantly, including operations that are
	// not listed.
	Differ int
	// Selected and Rest are the mean lengths of the critical paths in nanoseconds.
	Selected, Rest float64
}

// TimeLine is an operation or a call path with its own time on the critical path of a trace.
type TimeLine struct {
	Path           int // index in PathProfile.Paths, or -1 for an operation on all its call paths
	Service, Name  string
	Kind           int32   // 0 for an operation
	Selected, Rest float64 // mean of all traces of the set in nanoseconds
	Difference     float64 // Selected - Rest
	// Share is the difference divided by the difference of the mean lengths of the critical paths.
	// It may be negative or above 1, because other differences may be opposite. It is 0 if the
	// lengths do not differ.
	Share float64
	// Probability is the p-value: the probability of a difference of at least this size by chance.
	Probability float64
}

// RankTime returns the operations and call paths on which selected traces spend more or less time
// of their critical path than the rest. A difference must be significant by Welch's test on the
// sums of each trace, with a false discovery rate of 1 %, and large enough to matter. The result is
// empty if a set has fewer than minTraces traces.
func RankTime(p *tracestore.PathProfile) TimeRanking {
	out := TimeRanking{Selected: mean(float64(p.Selected.Time), &p.Selected), Rest: mean(float64(p.Rest.Time), &p.Rest)}
	if p.Selected.Traces < minTraces || p.Rest.Traces < minTraces {
		return out
	}
	operations := make([]TimeLine, 0, len(p.Operations))
	for i := range p.Operations {
		o := &p.Operations[i]
		if o.Selected.Traces+o.Rest.Traces < minPathTraces {
			continue
		}
		line := timeLine(p, &o.Selected, &o.Rest)
		line.Path, line.Service, line.Name = -1, o.Service, o.Name
		operations = append(operations, line)
	}
	paths := make([]TimeLine, 0, len(p.Paths))
	for i := range p.Paths {
		c := &p.Paths[i]
		if c.Selected.Traces+c.Rest.Traces < minPathTraces {
			continue
		}
		line := timeLine(p, &c.Selected, &c.Rest)
		line.Path, line.Service, line.Name, line.Kind = i, c.Service, c.Name, c.Kind
		paths = append(paths, line)
	}
	total := out.Selected - out.Rest
	if welchTest(p, float64(p.Selected.Time), p.Selected.TimeSquares, float64(p.Rest.Time), p.Rest.TimeSquares) > falseDiscoveryRate {
		total = 0
	}
	least := minTimeOfTrace * out.Rest
	out.Operations, out.Differ = chooseTimes(operations, total, least)
	out.Paths, _ = chooseTimes(paths, total, least)
	return out
}

func timeLine(p *tracestore.PathProfile, selected, rest *tracestore.PathCounts) TimeLine {
	line := TimeLine{Selected: mean(float64(selected.SelfTime), &p.Selected), Rest: mean(float64(rest.SelfTime), &p.Rest)}
	line.Difference = line.Selected - line.Rest
	line.Probability = welchTest(p, float64(selected.SelfTime), selected.SelfSquares, float64(rest.SelfTime), rest.SelfSquares)
	return line
}

// chooseTimes returns the significant lines that differ by at least a number of nanoseconds, and
// the number of all significant lines. total is the difference of the critical paths.
func chooseTimes(lines []TimeLine, total, least float64) (chosen []TimeLine, differ int) {
	lines = slices.DeleteFunc(lines, func(l TimeLine) bool { return l.Selected == 0 && l.Rest == 0 }) // not on the path
	probabilities := make([]float64, len(lines))
	for i := range lines {
		probabilities[i] = lines[i].Probability
	}
	for i, significant := range discoveries(probabilities, falseDiscoveryRate) {
		l := lines[i]
		if !significant || math.Abs(l.Difference) < minTimeRatio*max(l.Selected, l.Rest) {
			continue
		}
		differ++
		if math.Abs(l.Difference) < least {
			continue
		}
		if total != 0 {
			l.Share = l.Difference / total
		}
		chosen = append(chosen, l)
	}
	slices.SortStableFunc(chosen, func(a, b TimeLine) int {
		return cmp.Compare(math.Abs(b.Difference), math.Abs(a.Difference))
	})
	large := slices.IndexFunc(chosen, func(l TimeLine) bool { return math.Abs(l.Difference) < minTimeOfDifference*math.Abs(total) })
	switch {
	case large == 0:
		chosen = chosen[:min(len(chosen), fewTimeLines)]
	case large > 0:
		chosen = chosen[:large]
	}
	return chosen[:min(len(chosen), maxTimeLines)], differ
}

// mean returns a sum for each trace of a set.
func mean(sum float64, set *tracestore.PathSet) float64 { return sum / max(float64(set.Traces), 1) }

// welchTest returns the p-value of the difference of two means, from the sums and the sums of
// squares of all traces: Welch's two-sided test.
func welchTest(p *tracestore.PathProfile, selected, selectedSquares, rest, restSquares float64) float64 {
	n, m := float64(p.Selected.Traces), float64(p.Rest.Traces)
	v := varianceOfMean(selected, selectedSquares, n)
	w := varianceOfMean(rest, restSquares, m)
	difference := math.Abs(selected/n - rest/m)
	if v+w <= 0 {
		if difference > 0 {
			return 0
		}
		return 1
	}
	freedom := (v + w) * (v + w) / (v*v/(n-1) + w*w/(m-1))
	return studentTest(difference/math.Sqrt(v+w), freedom)
}

// varianceOfMean returns the variance of the mean of n values with a sum and a sum of squares.
func varianceOfMean(sum, squares, n float64) float64 {
	return max(squares-sum*sum/n, 0) / (n - 1) / n
}

// studentTest returns the probability of a value of at least |t|, on both sides, in Student's
// distribution, by Wallace's approximation, which is exact to three digits for 20 degrees of
// freedom and more.
func studentTest(t, freedom float64) float64 {
	z := math.Sqrt(freedom*math.Log1p(t*t/freedom)) * (8*freedom + 1) / (8*freedom + 3)
	return math.Erfc(z / math.Sqrt2)
}
