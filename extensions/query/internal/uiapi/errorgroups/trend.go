package errorgroups

import (
	"math"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/extensions/query/internal/core"
	"github.com/tracing-backend/tracing/extensions/query/internal/uiapi/route"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// kind is how a group develops in a window.
type kind string

const (
	usual   kind = "usual"   // as before, or as on earlier days
	isNew   kind = "new"     // it did not occur before
	growing kind = "growing" // it occurs more often than at other times
)

// trend says when a group started to occur, or to occur more often.
type trend struct {
	kind   kind
	since  uint64
	until  uint64  // 0: it continues
	factor float64 // of growing: how many times as often
	excess float64 // spans above the usual number
	// The mean numbers of spans in a part of the window, of growing: in the rise and otherwise.
	risen, otherwise float64
}

const (
	// quietShare is the length of an error-free time, as a share of the window, after which the
	// error counts as new.
	quietShare = 0.15
	// minCounted is the minimum share of the window that must be counted to determine a trend.
	minCounted = 0.5
	// An error has ended if, in at least endedParts parts at the end of the window, at least
	// minMissing errors were expected, and at most the share maxRemaining of them occurred.
	endedParts, minMissing, maxRemaining = 4, 9, 0.25
	minFactor                            = 3
	minGrown                             = 5
	// minEvidence is the minimum log-likelihood ratio of a rise. Random variation hardly ever
	// reaches it in any part of the window.
	minEvidence = 12
	// An error is usual if it occurred at least dailyShare times as often at the same time of each
	// of the daysBefore days before, as errors of nightly jobs do.
	daysBefore, dailyShare = 2, 0.5
)

// compareDays counts the groups of now at the same time of earlier days if one of them is new or
// growing. Groups that occurred often enough on each of these days become usual. It does nothing
// for a window of more than a day, which contains the same time of an earlier day.
func (c *counter) compareDays(w core.Window, now *counted) (incomplete tracestore.Reasons, err error) {
	const day = 24 * time.Hour
	changed := false
	for _, g := range now.groups {
		changed = changed || g.trend.kind != usual
	}
	if !changed || w.To.Sub(w.From) > day {
		return nil, nil
	}
	for n := range daysBefore {
		back := -time.Duration(n+1) * day
		then, err := c.countGroups(core.Window{From: w.From.Add(back), To: w.To.Add(back)})
		if err != nil {
			return nil, err
		}
		incomplete.Add(then.reasons...)
		for id, g := range now.groups {
			count := uint64(0)
			if earlier := then.groups[id]; earlier != nil {
				count = route.Estimate(earlier.spans.Durations.Count(), then.Share)
			}
			g.days = append(g.days, count)
		}
	}
	for _, g := range now.groups {
		count := route.Estimate(g.spans.Durations.Count(), now.Share)
		if float64(slices.Min(g.days)) >= dailyShare*float64(count) {
			g.trend = trend{kind: usual}
		}
	}
	return incomplete, nil
}

// trendOf returns the trend of a group. before is nil if the time before was not counted. The trend
// does not cover times that were not counted or not stored. If only a sample was counted, no group
// is new.
func (c *counted) trendOf(g *group, before *counted) trend {
	counts, first := c.countsOf(g, before)
	length := float64(c.parts.N) * float64(c.parts.Length)
	if len(counts) < int(minCounted*float64(c.parts.N)) {
		return trend{kind: usual}
	}
	sampled := c.Share < 1 || before != nil && before.Share < 1
	if !sampled && g.before == nil && float64(g.spans.First)-float64(first) > quietShare*length {
		t := trend{kind: isNew, since: g.spans.First, excess: float64(g.spans.Durations.Count())}
		last := c.parts.At(g.spans.Last)
		width := float64(last - c.parts.At(g.spans.First) + 1)
		if ended(c.parts.N-1-last, t.excess/width, 0) {
			t.until = g.spans.Last
		}
		return t
	}
	return c.rise(counts)
}

// countsOf returns the counts of a group in the parts of the time before, if it was counted, and
// then of the window. It leaves out initial parts that were not counted or in which nothing was
// stored. first is the start of the first count.
func (c *counted) countsOf(g *group, before *counted) (counts []float64, first uint64) {
	add := func(from *counted, of []uint64) {
		for i := range from.parts.N {
			if from.start(i+1) <= from.first { // not counted, or nothing was stored
				continue
			}
			n := 0.0
			if i < len(of) {
				n = float64(of[i]) / from.Share
			}
			counts = append(counts, n)
		}
	}
	first = c.first
	if before != nil && c.Since == 0 {
		first = before.first
		var of []uint64
		if g.before != nil {
			of = g.before.Parts
		}
		add(before, of)
	}
	add(c, g.spans.Parts)
	return counts, first
}

// rise returns the run of parts in which a group occurs more often than in all other parts, with
// enough parts in the window. If there are several, it returns the run with the most evidence.
func (c *counted) rise(counts []float64) trend {
	best, evidence := trend{kind: usual}, float64(minEvidence)
	total, all := 0.0, float64(len(counts))
	for _, n := range counts {
		total += n
	}
	begin := max(0, len(counts)-c.parts.N) // of the window
	for from := range counts {
		inside, seen := 0.0, 0.0 // seen in the window
		for to := from; to < len(counts); to++ {
			inside += counts[to]
			if to >= begin {
				seen += counts[to]
			}
			width := float64(to + 1 - from)
			outside, rest := total-inside, all-width
			if seen < minGrown || rest <= 0 || outside <= 0 {
				continue
			}
			risen, otherwise := inside/width, outside/rest
			if risen < minFactor*otherwise {
				continue
			}
			found := inside*math.Log(risen/(total/all)) + outside*math.Log(otherwise/(total/all))
			if found <= evidence {
				continue
			}
			evidence = found
			best = trend{kind: growing, factor: risen / otherwise, since: c.start(from + c.parts.N - len(counts)),
				excess: inside - otherwise*width, risen: risen, otherwise: otherwise}
			after := 0.0
			for _, n := range counts[to+1:] {
				after += n
			}
			if ended(len(counts)-1-to, risen, after) {
				best.until = c.start(to + 1 + c.parts.N - len(counts))
			}
		}
	}
	return best
}

// ended reports whether an error has ended: n errors occurred in the given number of parts after
// its rise, and mean is the mean number of errors per part during the rise.
func ended(parts int, mean, n float64) bool {
	missing := float64(parts) * mean
	return parts >= endedParts && missing >= minMissing && n <= maxRemaining*missing
}

// start returns the start of a part, which may be before the window.
func (c *counted) start(part int) uint64 {
	return uint64(int64(c.parts.From) + int64(part)*int64(c.parts.Length))
}
