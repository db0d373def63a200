package adaptive

import (
	"math"
	"slices"
)

// surprise is how many standard deviations two rates are apart that are not one. It is asked of each operation and interval about as often as
// there are buckets: with four, chance took a steady rate for two, and put it off by a fifth, in six of forty simulated hours of a hundred
// services; with five in none.
const surprise = 5.

// window returns how many of the newest samples, at least least, have one rate: they end where the rate last changed. The interval in which
// it did has some of either rate, and is left out once later ones say something.
func window(all []sample, least int) int {
	n := sameRate(all, least)
	if n < len(all) && n > least && slices.ContainsFunc(all[:n-1], func(s sample) bool { return s.exposure > 0 }) {
		n--
	}
	return n
}

// sameRate is window with the interval of the change, if that differs more from those before it than from those behind it.
func sameRate(all []sample, least int) int {
	n := len(all)
	for {
		worst, at := surprise, 0
		for split := max(1, least); split < n; split++ {
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

// distance returns how many standard deviations the rates of two lots of samples are apart; 0 where one of them says nothing.
func distance(a, b []sample) float64 {
	rateA, varianceA := rateOf(a)
	rateB, varianceB := rateOf(b)
	if math.IsInf(varianceA, 1) || math.IsInf(varianceB, 1) {
		return 0
	}
	return math.Abs(rateA-rateB) / math.Sqrt(varianceA+varianceB)
}

// rateOf returns the rate of samples, all of which count the same, and its variance, which is that of a count, and infinite without any
// exposure. That one more is counted for it keeps a count of nothing from being certain.
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

// estimate is what the samples of a window say together.
type estimate struct {
	rate    float64 // traces that began per second
	samples float64 // on which that rests
	total   sample  // of all of them, each counting the same
	buckets int     // that say something
}

// weights returns the weights of n samples, the newest first: of the newest, so many as most says, the fourth power of their place from the
// oldest of these. Older ones, which are there only because the rate was the same, count as much as that one.
func weights(n, most int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = math.Pow(float64(max(1, min(n, most)-i)), 4)
	}
	return out
}

// weigh estimates a rate. Newer samples weigh more, and those more that looked at more traces.
func weigh(all []sample, most int) estimate {
	var e estimate
	var counted, exposed, squares float64
	for i, w := range weights(len(all), most) {
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
