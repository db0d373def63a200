package explain

import (
	"cmp"
	"math"
	"slices"
)

// falseDiscoveryRate is the expected share of lines that differ only by chance. attributeRate is
// the rate for attributes, which is lower because users tend to see these lines as the cause.
const falseDiscoveryRate, attributeRate = 0.01, 0.001

// minTraces is the minimum number of traces of each side. With fewer, shares are not meaningful.
const minTraces = 30

// fewExpected is the expected number of traces below which the normal distribution is a poor
// approximation of the binomial one.
const fewExpected = 10

// proportionTest returns the p-value of the difference between the shares n/of: stratifiedTest with
// one stratum. The result is 1 if a side is empty.
func proportionTest(n, of pair) float64 { return stratifiedTest([]pair{n}, []pair{of}) }

// exactTest is Fisher's exact test for several strata: the probability of the observed or a more
// extreme number of selected traces in the same direction, doubled.
func exactTest(has, of []pair) float64 {
	sums := []float64{1} // the probability of each number of selected traces, from least on
	least, observed := 0, 0
	for s := range of {
		if of[s].selected == 0 || of[s].rest == 0 {
			continue
		}
		with := has[s].selected + has[s].rest
		low := max(0, with-of[s].rest)
		one := make([]float64, min(with, of[s].selected)-low+1)
		constant := logChoose(of[s].selected+of[s].rest, with)
		for i := range one {
			one[i] = math.Exp(logChoose(of[s].selected, low+i) + logChoose(of[s].rest, with-low-i) - constant)
		}
		sums, least, observed = convolve(sums, one), least+low, observed+has[s].selected
	}
	below, above := 0.0, 0.0
	for i, p := range sums {
		if least+i <= observed {
			below += p
		}
		if least+i >= observed {
			above += p
		}
	}
	return min(1, 2*min(below, above))
}

// convolve returns the distribution of the sum of two independent numbers.
func convolve(a, b []float64) []float64 {
	out := make([]float64, len(a)+len(b)-1)
	for i, p := range a {
		for j, q := range b {
			out[i+j] += p * q
		}
	}
	return out
}

// logChoose returns the logarithm of the number of ways to choose k of n.
func logChoose(n, k int) float64 {
	gamma := func(n int) float64 {
		g, _ := math.Lgamma(float64(n) + 1)
		return g
	}
	return gamma(n) - gamma(k) - gamma(n-k)
}

// shareOf returns n / all, or 0 if all is 0.
func shareOf(n, all int) float64 {
	if all == 0 {
		return 0
	}
	return float64(n) / float64(all)
}

// discoveries returns which of several independent or positively dependent tests are significant,
// by the procedure of Benjamini and Hochberg: the expected share of chance results among them is at
// most the rate.
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
