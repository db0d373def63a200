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

// Options are the parameters of calculations.
type Options struct {
	Target        float64 // sampled traces per second for each operation
	Tolerance     float64 // maximum deviation of the rate, as a fraction of the target
	Initial       float64 // probability of new operations
	Min           float64 // minimum probability
	MinBuckets    int     // minimum number of buckets for an estimate
	MaxOperations int     // maximum number of operations with their own probability
}

// Reasons of decisions, see sampling.Decision.Reason.
const (
	ReasonKept      = "kept: the rate is within the tolerance"
	ReasonFollowed  = "target divided by the estimated rate of new traces"
	ReasonRefined   = "target divided by the rate of new traces, estimated from more data"
	ReasonAll       = "all traces are sampled: their rate is below the target"
	ReasonCapped    = "raised to twice the previous probability, the maximum step of one calculation"
	ReasonNothing   = "raised: nothing was sampled"
	ReasonNoNews    = "kept: no recent traces of the operation"
	ReasonForeign   = "kept: clients do not sample with the probabilities that this service calculates"
	ReasonUnsettled = "kept: nothing was sampled, and the effect of the last change is not visible yet"
	ReasonLimited   = "limited to the configured minimum probability"
)

const (
	// maxRaise is the maximum factor by which one calculation raises a probability. Lowering has no
	// limit.
	maxRaise = 2
	// settledBuckets is the number of buckets with the same rate after which the rate counts as
	// steady. Until then each calculation follows the rate, even within the tolerance, because the
	// first bucket after a change often contains part of the previous rate.
	settledBuckets = 3
	// enoughSamples is the number of sampled traces after which an estimate within the tolerance is
	// kept. Below it, a calculation follows the rate whenever the number of samples has doubled.
	enoughSamples = 400
	// significance is the number of standard deviations at which a rate differs significantly from
	// the target.
	significance = 4
	// digits is the number of significant digits of a probability.
	digits = 4
)

// Calculate returns the decisions for all operations of the history, sorted. before is the previous
// calculation, or nil; by is the name of the collector, and at the time of the round. Operations
// without any counts in the whole history are removed, unless parts of the history are missing. If
// there are more than o.MaxOperations, existing operations take precedence.
func Calculate(o Options, h *History, before *sampling.Calculation, by string, at time.Time) *sampling.Calculation {
	out := &sampling.Calculation{By: by, At: at}
	known := map[sampling.OperationKey]bool{}
	if before != nil {
		for _, d := range before.Decisions {
			buckets, seen := h.All[d.OperationKey]
			if len(out.Decisions) == o.MaxOperations || !seen && h.Covered >= h.Size {
				continue
			}
			known[d.OperationKey] = true
			if seen {
				o.decide(&d, buckets, h.Length, at)
			} else {
				d.Before, d.Reason = d.Probability, ReasonNoNews
			}
			out.Decisions = append(out.Decisions, d)
		}
	}
	fresh := slices.SortedFunc(maps.Keys(h.All), compare)
	fresh = slices.DeleteFunc(fresh, func(t sampling.OperationKey) bool { return known[t] })
	for _, t := range fresh[:min(len(fresh), o.MaxOperations-len(out.Decisions))] {
		d := sampling.Decision{OperationKey: t, Probability: o.Initial, Changed: at}
		o.decide(&d, h.All[t], h.Length, at)
		out.Decisions = append(out.Decisions, d)
	}
	slices.SortFunc(out.Decisions, func(a, b sampling.Decision) int { return compare(a.OperationKey, b.OperationKey) })
	return out
}

// compare orders operations by tenant, service and name.
func compare(a, b sampling.OperationKey) int {
	return cmp.Or(cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Operation, b.Operation))
}

// decide updates the decision about an operation.
func (o Options) decide(d *sampling.Decision, buckets []Bucket, length time.Duration, at time.Time) {
	samples := o.samples(d, buckets, length)
	e := weigh(samples[:window(samples, min(o.MinBuckets, len(samples)))], o.MinBuckets)
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

// samples returns the samples of buckets.
func (o Options) samples(d *sampling.Decision, buckets []Bucket, length time.Duration) []sample {
	minimum := min(o.Initial, d.Probability)
	if len(d.Recent) > 0 {
		minimum = min(slices.Min(d.Recent), d.Probability)
	}
	out := make([]sample, len(buckets))
	for i := range buckets {
		out[i] = buckets[i].sample(length, minimum)
	}
	return out
}

// adaptive reports whether clients sample with a calculated probability or the initial probability.
func (o Options) adaptive(d *sampling.Decision, buckets []Bucket) bool {
	known := func(s sampling.ProbabilityCount) bool {
		return same(s.Probability, d.Probability) || same(s.Probability, o.Initial) ||
			slices.ContainsFunc(d.Recent, func(p float64) bool { return same(s.Probability, p) })
	}
	return slices.ContainsFunc(buckets, func(b Bucket) bool { return b.ByLowerBound > 0 || slices.ContainsFunc(b.Counts, known) })
}

// doubled returns the next probability of an operation without sampled traces; exposure is in
// seconds of all traces. The result is not above the probability that reaches the target if one
// trace had been sampled. A higher one is not justified until the effect of the last change is
// visible.
func (o Options) doubled(p, exposure float64) (float64, string) {
	if next := min(maxRaise*p, o.Target*exposure); next > p {
		return next, ReasonNothing
	}
	return p, ReasonUnsettled
}

// follow returns the next probability of an operation whose rate is known.
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
	if limit := maxRaise * d.Probability; next > limit {
		d.Samples = 0
		return limit, ReasonCapped
	}
	d.Samples = e.samples
	return next, reason
}

// tolerable reports whether a rate, estimated from a number of samples, is close enough to the
// target: always in the inner half of the tolerance, and in the outer half only if the difference
// is not significant.
func (o Options) tolerable(qps, samples float64) bool {
	off := math.Abs(qps-o.Target) / o.Target
	return off < o.Tolerance/2 || off < o.Tolerance && off*math.Sqrt(samples) < significance
}

// rounded returns a probability with few digits, so that it stays the same when clients format and
// parse it.
func rounded(p float64) float64 {
	r, err := strconv.ParseFloat(strconv.FormatFloat(p, 'g', digits, 64), 64)
	if err != nil {
		return p
	}
	return r
}
