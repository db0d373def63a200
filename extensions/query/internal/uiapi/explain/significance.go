package explain

import (
	"cmp"
	"math"
	"slices"
)

// falseDiscoveryRate is the expected share of lines that differ only by chance.
const falseDiscoveryRate = 0.01

// minTraces is the minimum number of traces of each side. With fewer, shares say little.
const minTraces = 30

// fewExpected is the expected number of traces below which the normal distribution is a poor
// approximation of the binomial one.
const fewExpected = 10

// proportionTest returns the probability that shares differ at least as much as n of of if there is
// no difference: a two-sided two-proportion test. It uses the normal distribution, or Fisher's
// exact test if the numbers are small. The result is 1 if a side is empty.
func proportionTest(n, of pair) float64 {
	if of.selected == 0 || of.rest == 0 {
		return 1
	}
	all, has := float64(of.selected+of.rest), float64(n.selected+n.rest)
	smaller := min(float64(of.selected), float64(of.rest)) * min(has, all-has) / all
	if smaller < fewExpected {
		return exactTest(n, of)
	}
	p := has / all
	deviation := math.Sqrt(p * (1 - p) * (1/float64(of.selected) + 1/float64(of.rest)))
	z := math.Abs(shareOf(n.selected, of.selected)-shareOf(n.rest, of.rest)) / deviation
	return math.Erfc(z / math.Sqrt2)
}

// exactTest is Fisher's exact test: the probability of the observed or a more extreme number of
// selected traces in the same direction, doubled.
func exactTest(n, of pair) float64 {
	has, all := n.selected+n.rest, of.selected+of.rest
	low, high := max(0, has-of.rest), min(has, of.selected)
	constant := logChoose(all, has)
	probability := func(k int) float64 {
		return math.Exp(logChoose(of.selected, k) + logChoose(of.rest, has-k) - constant)
	}
	sum := 0.0
	if n.selected*all >= has*of.selected {
		low = n.selected
	} else {
		high = n.selected
	}
	for k := low; k <= high; k++ {
		sum += probability(k)
	}
	return min(1, 2*sum)
}

// logChoose returns the logarithm of the number of ways to choose k of n.
func logChoose(n, k int) float64 {
	gamma := func(n int) float64 {
		g, _ := math.Lgamma(float64(n) + 1)
		return g
	}
	return gamma(n) - gamma(k) - gamma(n-k)
}

// shareOf returns n of all as share, 0 if there are none.
func shareOf(n, all int) float64 {
	if all == 0 {
		return 0
	}
	return float64(n) / float64(all)
}

// discoveries returns which of several independent or positively dependent tests are significant,
// by the procedure of Benjamini and Hochberg: of those, the expected share that is due to chance is
// at most the rate.
func discoveries(p []float64, rate float64) []bool {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	significant := 0
	for i, at := range order {
		if p[at] <= rate*float64(i+1)/float64(len(p)) {
			significant = i + 1
		}
	}
	out := make([]bool, len(p))
	for _, at := range order[:significant] {
		out[at] = true
	}
	return out
}
