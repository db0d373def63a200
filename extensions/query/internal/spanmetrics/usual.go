package spanmetrics

import (
	"cmp"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Usual values are learned from quiet time, regardless of the shown range: the day before the end
// of the range is divided into slots, and slots outside of incidents are quiet. Incidents are found
// by comparison with the calmest slots, also before the range. Errors or slow calls that occur at
// the same time of most other days, for example because of a nightly job, are usual at that time.

const (
	slot          = 15 * time.Minute
	day           = 24 * time.Hour
	slotsPerDay   = int(day / slot)
	learnedDays   = 7
	minSlots      = 2 // slots with calls; with fewer, usual values are unknown
	minDays       = 3 // other days with calls at a time of day
	calmestShare  = 1. / 3
	minCalls      = 20
	minBad        = 5
	minMissing    = 5 // minimum usual calls for a service without calls to count as not called
	minErrorShare = 0.01
	slowFactor    = 1.5  // of the usual p95
	minSlowShare  = 0.05 // share of slow calls from which p95 is slow
	badFactor     = 2    // of the usual share
	minSigma      = 3.   // standard deviations beyond chance
	maxSigma      = 6.
)

// Usual holds the calls in quiet time.
type Usual struct {
	Red
	Quiet time.Duration // length of the quiet time since the first call of the day, including time without calls
}

// callsIn returns the usual number of calls in a period.
func (u *Usual) callsIn(d time.Duration) float64 {
	return float64(u.Calls) * float64(d) / float64(max(u.Quiet, time.Minute))
}

// badCalls counts the bad calls of a kind.
type badCalls struct {
	kind     IncidentKind
	minShare float64 // minimum share of bad calls in an incident
	of       func(*counts) uint64
	from     float64 // duration from which calls are slow
	usual    float64 // likely share in quiet time
	slots    []badOf // from Periods.UsualStart on
}

// badOf holds a number of calls, and how many of them are bad.
type badOf struct{ calls, bad uint64 }

// history is what was learned about a service.
type history struct {
	quiet []*counts
	usual *Usual // nil if too little is known
	bad   []badCalls
}

// learn finds the quiet slots among the last ones (recent is their number), and the usual values in
// them. partial is the length of the very last slot, which may not have ended yet.
func learn(slots []counts, recent int, partial time.Duration) *history {
	h := &history{}
	last := slots[max(0, len(slots)-recent):]
	used := chosen(last, func(c *counts) bool { return c.calls > 0 })
	if len(used) < minSlots {
		return h
	}
	failed := badCalls{kind: Errors, minShare: minErrorShare, of: func(c *counts) uint64 { return c.errors }}
	quiet := failed.quiet(used)
	slow := slowCalls(quiet)
	quiet = slow.quiet(quiet)
	all := sum(quiet)
	if all.calls < minCalls {
		return h
	}
	h.quiet = quiet
	first := slices.IndexFunc(last, func(c counts) bool { return c.calls > 0 })
	noise := len(used) - len(quiet)
	h.usual = &Usual{Red: all.red(), Quiet: time.Duration(len(last)-first-noise) * slot}
	if end := &last[len(last)-1]; end.calls == 0 || slices.Contains(quiet, end) {
		h.usual.Quiet -= slot - partial
	}
	for _, b := range []badCalls{failed, slow} {
		b.usual = b.likely(&all)
		b.slots = make([]badOf, len(slots))
		for i := range slots {
			b.slots[i] = badOf{slots[i].calls, b.of(&slots[i])}
		}
		h.bad = append(h.bad, b)
	}
	return h
}

// slowCalls counts the calls that take longer than the usual p95 by a factor.
func slowCalls(slots []*counts) badCalls {
	quantiles := make([]float64, 0, len(slots))
	for _, c := range slots {
		if c.calls >= minCalls {
			quantiles = append(quantiles, c.durations.Quantile(0.95))
		}
	}
	if len(quantiles) == 0 {
		all := sum(slots)
		quantiles = append(quantiles, all.durations.Quantile(0.95))
	}
	slices.Sort(quantiles)
	limit := tracestore.BucketOf(uint64(slowFactor * quantiles[int(calmestShare*float64(len(quantiles)))]))
	return badCalls{kind: Slow, minShare: minSlowShare, of: func(c *counts) uint64 { return longer(&c.durations, limit) },
		from: tracestore.BucketStart(limit + 1)}
}

// longer returns the number of durations in buckets after a bucket.
func longer(h *tracestore.Histogram, bucket int) (n uint64) {
	first, buckets := h.Counts()
	for i := max(0, bucket+1-first); i < len(buckets); i++ {
		n += buckets[i]
	}
	return n
}

// quiet returns the slots that are not in incidents, in comparison with the calmest slots. Since
// the calmest slots may be calm by chance, a rise that does not exceed all other slots is not an
// incident, and a rise that contains most of the calls must exceed them by more.
func (b *badCalls) quiet(slots []*counts) (rest []*counts) {
	sorted := slices.Clone(slots)
	slices.SortStableFunc(sorted, func(x, y *counts) int { return cmp.Compare(b.share(x), b.share(y)) })
	all := sum(slots)
	var calmest counts
	for _, c := range sorted {
		if float64(calmest.calls) >= calmestShare*float64(all.calls) {
			break
		}
		calmest.add(c)
	}
	usual := slices.Repeat([]float64{b.likely(&calmest)}, len(slots))
	end := 0
	var bad []*counts
	for _, r := range b.rises(slots, usual) {
		rest = append(rest, slots[end:r.first]...)
		bad = append(bad, slots[r.first:r.last+1]...)
		end = r.last + 1
	}
	rest = append(rest, slots[end:]...)
	incidents, others := sum(bad), sum(rest)
	sigma := minSigma
	if float64(others.calls) < calmestShare*float64(all.calls) {
		sigma = maxSigma
	}
	if !b.exceed(&incidents, &others, sigma) {
		return slots
	}
	return rest
}

// likely returns the share of bad calls that similar calls are likely to have. It is above 0.
func (b *badCalls) likely(c *counts) float64 {
	return max(minUsualShare, float64(b.of(c)+1)/float64(c.calls+1))
}

func (b *badCalls) share(c *counts) float64 { return float64(b.of(c)) / float64(max(c.calls, 1)) }

// exceed reports whether calls have a higher share of bad calls than others, beyond chance.
func (b *badCalls) exceed(c, others *counts, sigma float64) bool {
	bad, share, before := b.of(c), b.share(c), b.share(others)
	if bad < minBad || share < b.minShare || share < badFactor*before {
		return false
	}
	pooled := float64(bad+b.of(others)) / float64(c.calls+others.calls)
	variance := pooled * (1 - pooled) * (1/float64(c.calls) + 1/float64(max(others.calls, 1)))
	return (share-before)*(share-before) >= sigma*sigma*variance
}

// shareIn returns the usual share of bad calls in a slot: the share in quiet time, or the median of
// other days at the same time if this is higher.
func (b *badCalls) shareIn(at int) float64 {
	var shares []float64
	for i := (at + slotsPerDay) % slotsPerDay; i < len(b.slots); i += slotsPerDay {
		if i == at {
			continue
		}
		var around badOf
		for _, s := range b.slots[max(0, i-1):min(i+2, len(b.slots))] {
			around.calls += s.calls
			around.bad += s.bad
		}
		if around.calls >= minCalls {
			shares = append(shares, float64(around.bad)/float64(around.calls))
		}
	}
	if len(shares) < minDays {
		return b.usual
	}
	slices.Sort(shares)
	median := shares[len(shares)/2]
	if b.kind == Errors && median >= alwaysFailing {
		return b.usual
	}
	return max(b.usual, median)
}

// chosen returns pointers to some counts.
func chosen(list []counts, choose func(*counts) bool) (out []*counts) {
	for i := range list {
		if choose(&list[i]) {
			out = append(out, &list[i])
		}
	}
	return out
}

func sum(list []*counts) (all counts) {
	for _, c := range list {
		all.add(c)
	}
	return all
}
