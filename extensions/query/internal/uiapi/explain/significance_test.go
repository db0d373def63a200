package explain

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestProportionTest compares with exact sums of fractions, and for large numbers with the square
// root of chi squared as normal deviate.
func TestProportionTest(t *testing.T) {
	for _, c := range []struct {
		n, of pair
		want  float64
	}{
		{pair{450, 250}, pair{1000, 1000}, 7.00e-21}, // deviate 9.37
		{pair{100, 100}, pair{1000, 1000}, 1},
		{pair{60, 40}, pair{500, 500}, 0.0350},
		{pair{2, 10}, pair{30, 2000}, 2 * 0.01271}, // hypergeometric, not 1e-5 as by the normal distribution
		{pair{0, 0}, pair{30, 2000}, 1},
		{pair{30, 2000}, pair{30, 2000}, 1},
		{pair{5, 0}, pair{30, 30}, 2 * 0.02610},
		{pair{3, 3}, pair{0, 10}, 1},
	} {
		got := proportionTest(c.n, c.of)
		if math.Abs(got-c.want) > 0.02*c.want {
			t.Errorf("%+v of %+v: probability %.4g, want %.4g", c.n, c.of, got, c.want)
		}
	}
}

// TestProportionTestRate checks that differences by chance are found at most as often as promised,
// for all numbers, and that the exact test and the normal distribution agree where they meet.
func TestProportionTestRate(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		share float64
		of    pair
	}{{0.5, pair{30, 30}}, {0.01, pair{30, 2000}}, {0.1, pair{100, 2000}}, {0.003, pair{2000, 2000}}, {0.9, pair{50, 500}}} {
		const rounds = 4000
		found := 0
		for range rounds {
			n := pair{binomial(r, c.of.selected, c.share), binomial(r, c.of.rest, c.share)}
			if proportionTest(n, c.of) < 0.01 {
				found++
			}
		}
		if share := float64(found) / rounds; share > 0.015 {
			t.Errorf("share %v of %+v: %.2f %% of the tests are significant at 1 %%", c.share, c.of, 100*share)
		}
	}
	n, of := pair{30, 25}, pair{300, 500}
	if a, b := exactTest([]pair{n}, []pair{of}), proportionTest(n, of); a < b || a > 2*b {
		t.Errorf("exact %v, normal %v", a, b)
	}
}

func binomial(r *rand.Rand, n int, p float64) (k int) {
	for range n {
		if r.Float64() < p {
			k++
		}
	}
	return k
}

// TestDiscoveries uses the example of Benjamini and Hochberg (1995), section 3.2.
func TestDiscoveries(t *testing.T) {
	p := []float64{0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1}
	slices.Reverse(p)
	n := 0
	for i, yes := range discoveries(p, 0.05) {
		if yes {
			n++
			if p[i] > 0.0095 {
				t.Errorf("%v is significant", p[i])
			}
		}
	}
	if n != 4 {
		t.Errorf("%d are significant, want 4", n)
	}
	if len(discoveries(nil, 0.01)) != 0 {
		t.Error("something of nothing is significant")
	}
}
