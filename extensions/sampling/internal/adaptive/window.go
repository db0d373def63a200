package adaptive

import (
	"math"
	"slices"
)

// changeThreshold is the number of standard deviations at which two rates count as different. The
// test runs for each operation and interval about as often as there are buckets. In simulations of
// 40 hours with a hundred services, a threshold of 4 split a steady rate by chance in 6 of the
// hours, with errors of up to a fifth; a threshold of 5 in none.
const changeThreshold = 5.

// window returns how many of the newest samples, at least minimum, have the same rate. The interval
// in which the rate changed contains both rates; it is left out once a later one has information.
func window(all []sample, minimum int) int {
	n := sameRate(all, minimum)
	if n < len(all) && n > minimum && slices.ContainsFunc(all[:n-1], func(s sample) bool { return s.exposure > 0 }) {
		n--
	}
	return n
}

// sameRate returns how many of the newest samples have the same rate. Unlike window, it keeps the
// interval in which the rate changed if that interval is closer to the newer samples than to the
// older ones.
func sameRate(all []sample, minimum int) int {
	n := len(all)
	for {
		worst, at := changeThreshold, 0
		for split := max(1, minimum); split < n; split++ {
			if d := distance(all[:split], all[split:n]); d > worst {
				worst, at = d, split
			}
		}
		if at == 0 {
			return n
		}
		n = at
	}
}

// distance returns the difference of the rates of two groups of samples in standard deviations; 0
// if a group has no information.
func distance(a, b []sample) float64 {
	rateA, varianceA := rateOf(a)
	rateB, varianceB := rateOf(b)
	if math.IsInf(varianceA, 1) || math.IsInf(varianceB, 1) {
		return 0
	}
	return math.Abs(rateA-rateB) / math.Sqrt(varianceA+varianceB)
}

// rateOf returns the rate of samples with equal weights, and its variance. The variance is
// calculated as if one more trace had been counted, so that a count of zero is not certain; without
// exposure it is infinite.
func rateOf(all []sample) (rate, variance float64) {
	var sum sample
	for _, s := range all {
		sum.count += s.count
		sum.exposure += s.exposure
	}
	if sum.exposure == 0 {
		return 0, math.Inf(1)
	}
	return sum.count / sum.exposure, (sum.count + 1) / (sum.exposure * sum.exposure)
}

// estimate is the result of weighing the samples of a window.
type estimate struct {
	rate    float64 // new traces per second
	samples float64 // effective number of sampled traces
	total   sample  // unweighted sum
	buckets int     // number of buckets with information
}

// weights returns the weights of n samples, the newest first. Among the newest minBuckets samples,
// the weight is the fourth power of the position counted from the oldest one, whose weight is 1.
// All older samples have the weight 1, too.
func weights(n, minBuckets int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = math.Pow(float64(max(1, min(n, minBuckets)-i)), 4)
	}
	return out
}

// weigh estimates a rate. Newer samples, and samples with more exposure, have more weight.
func weigh(all []sample, minBuckets int) estimate {
	var e estimate
	var counted, exposed, squares float64
	for i, w := range weights(len(all), minBuckets) {
		s := all[i]
		counted, exposed, squares = counted+w*s.count, exposed+w*s.exposure, squares+w*w*s.count
		e.total.count += s.count
		e.total.exposure += s.exposure
		if s.exposure > 0 {
			e.buckets++
		}
	}
	if exposed > 0 {
		e.rate = counted / exposed
	}
	if squares > 0 {
		e.samples = counted * counted / squares
	}
	return e
}
