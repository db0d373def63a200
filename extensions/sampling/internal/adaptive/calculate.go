package adaptive

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// Options are what is wanted.
type Options struct {
	Target    float64 // sampled traces per second of each operation
	Tolerance float64 // share of the target by which the rate may differ
	Initial   float64 // probability of operations that are new
	Min       float64 // least probability
	Buckets   int     // least number of buckets that an estimate rests on
	Most      int     // operations that have a probability of their own
}

// Reasons of decisions.
const (
	ReasonKept      = "kept: the rate is within the tolerance"
	ReasonFollowed  = "the target divided by the rate at which traces begin"
	ReasonRefined   = "the target divided by the rate at which traces begin, which is known better now"
	ReasonAll       = "all traces are sampled: fewer begin than are wanted"
	ReasonCapped    = "raised as far as one calculation may, to twice what it was"
	ReasonNothing   = "raised: nothing was sampled"
	ReasonNoNews    = "kept: no trace of the operation was seen lately"
	ReasonForeign   = "kept: clients sample with other probabilities than they were told, or ask for none"
	ReasonUnsettled = "kept: nothing was sampled, and what was told last has not been seen yet"
	ReasonLimited   = "the least probability that is configured"
)

const (
	// greatestStep is how much one calculation may raise a probability. It may lower it at once.
	greatestStep = 2
	// settledBuckets is how many buckets with one rate make it a steady one. Until then each calculation follows the rate, within the
	// tolerance, too: the first bucket after a change often has some of what was before.
	settledBuckets = 3
	// enoughSamples is how many sampled traces an estimate needs, to be left alone within the tolerance. Until then each calculation follows
	// the rate that has twice as many as the one before.
	enoughSamples = 400
	// sure is how many standard deviations a rate is away from the target that is not the target.
	sure = 4
	// digits of a probability that clients are told.
	digits = 4
)

// Calculate decides about all operations of the history. Those that were not seen for as long as it reaches go, unless there was nobody to see
// them. Of more than o.Most, those stay that were there before. at is the round, by the collector that calculates. What is returned is sorted.
func Calculate(o Options, h *History, before *sampling.Calculation, by string, at time.Time) *sampling.Calculation {
	out := &sampling.Calculation{By: by, At: at}
	known := map[sampling.Target]bool{}
	if before != nil {
		for _, d := range before.Decisions {
			buckets, seen := h.All[d.Target]
			if len(out.Decisions) == o.Most || !seen && h.Covered >= h.Keep {
				continue
			}
			known[d.Target] = true
			if seen {
				o.decide(&d, buckets, h.Length, at)
			} else {
				d.Before, d.Reason = d.Probability, ReasonNoNews
			}
			out.Decisions = append(out.Decisions, d)
		}
	}
	fresh := slices.SortedFunc(maps.Keys(h.All), compare)
	fresh = slices.DeleteFunc(fresh, func(t sampling.Target) bool { return known[t] })
	for _, t := range fresh[:min(len(fresh), o.Most-len(out.Decisions))] {
		d := sampling.Decision{Target: t, Probability: o.Initial, Changed: at}
		o.decide(&d, h.All[t], h.Length, at)
		out.Decisions = append(out.Decisions, d)
	}
	slices.SortFunc(out.Decisions, func(a, b sampling.Decision) int { return compare(a.Target, b.Target) })
	return out
}

func compare(a, b sampling.Target) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Operation, b.Operation))
}

// decide makes of the last decision about an operation the next one.
func (o Options) decide(d *sampling.Decision, buckets []Bucket, length time.Duration, at time.Time) {
	samples := o.samples(d, buckets, length)
	e := weigh(samples[:window(samples, min(o.Buckets, len(samples)))], o.Buckets)
	d.Before, d.QPS = d.Probability, e.rate*d.Probability
	next := d.Probability
	switch {
	case !o.adaptive(d, buckets):
		d.Reason = ReasonForeign
	case e.total.exposure == 0:
		d.Reason = ReasonNoNews
	case e.total.count == 0:
		next, d.Reason = o.doubled(d.Probability, e.total.exposure)
	default:
		next, d.Reason = o.follow(d, e)
	}
	if next < o.Min {
		next, d.Reason = o.Min, ReasonLimited
	}
	if next = rounded(min(next, 1)); next != d.Probability {
		d.Recent = slices.Insert(slices.Clone(d.Recent), 0, d.Probability)
		d.Recent = d.Recent[:min(len(d.Recent), sampling.MaxRecent)]
		d.Probability, d.Changed = next, at
	}
}

// samples estimates buckets.
func (o Options) samples(d *sampling.Decision, buckets []Bucket, length time.Duration) []sample {
	least := min(o.Initial, d.Probability)
	if len(d.Recent) > 0 {
		least = min(slices.Min(d.Recent), d.Probability)
	}
	out := make([]sample, len(buckets))
	for i := range buckets {
		out[i] = buckets[i].sample(length, least)
	}
	return out
}

// adaptive reports whether clients sample with a probability that they were told. Of an operation that is new, the initial one counts, too.
func (o Options) adaptive(d *sampling.Decision, buckets []Bucket) bool {
	told := func(s sampling.Seen) bool {
		return same(s.Probability, d.Probability) || same(s.Probability, o.Initial) ||
			slices.ContainsFunc(d.Recent, func(p float64) bool { return same(s.Probability, p) })
	}
	return slices.ContainsFunc(buckets, func(b Bucket) bool { return b.Bounded > 0 || slices.ContainsFunc(b.Seen, told) })
}

// doubled is for an operation of which nothing was sampled, though so much was looked at. The probability is not raised beyond the one at
// which the target would be sampled if one trace had been: more than that is not known until clients have what they were told last.
func (o Options) doubled(p, exposure float64) (float64, string) {
	if next := min(greatestStep*p, o.Target*exposure); next > p {
		return next, ReasonNothing
	}
	return p, ReasonUnsettled
}

// follow is for an operation whose rate is known.
func (o Options) follow(d *sampling.Decision, e estimate) (float64, string) {
	reason := ReasonFollowed
	if e.buckets >= settledBuckets && o.tolerable(d.QPS, e.samples) {
		if d.Samples >= enoughSamples || e.samples < 2*d.Samples {
			return d.Probability, ReasonKept
		}
		reason = ReasonRefined
	}
	next := o.Target / e.rate
	if next >= 1 {
		next, reason = 1, ReasonAll
	}
	if most := greatestStep * d.Probability; next > most {
		d.Samples = 0
		return most, ReasonCapped
	}
	d.Samples = e.samples
	return next, reason
}

// tolerable reports whether a rate that rests on so many samples may stay as it is: within the tolerance, but in its outer half only where
// chance may have put it there.
func (o Options) tolerable(qps, samples float64) bool {
	off := math.Abs(qps-o.Target) / o.Target
	return off < o.Tolerance/2 || off < o.Tolerance && off*math.Sqrt(samples) < sure
}

// rounded returns a probability with few digits, so that it is the same again after clients have written it down.
func rounded(p float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(p, 'g', digits, 64), 64)
	if err != nil {
		return p
	}
	return r
}
