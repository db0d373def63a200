package tracestore

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// checkBucket compares BucketOf with its definition, 2^b <= d^32 < 2^(b+1), in exact arithmetic.
func checkBucket(t *testing.T, d uint64) {
	t.Helper()
	b := BucketOf(d)
	power := new(big.Int).Exp(new(big.Int).SetUint64(max(d, 1)), big.NewInt(BucketsPerOctave), nil)
	if got := power.BitLen() - 1; b != got {
		t.Errorf("%d is in bucket %d, want %d", d, b, got)
	}
}

func TestBucketOf(t *testing.T) {
	for d := range uint64(5000) {
		checkBucket(t, d)
	}
	for octave := range 64 {
		for border := range BucketsPerOctave {
			d := belowBorder(border+1) >> (63 - octave)
			checkBucket(t, d-1)
			checkBucket(t, d)
			checkBucket(t, d+1)
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	for range 10_000 {
		checkBucket(t, r.Uint64()>>r.IntN(64))
	}
	if got := BucketOf(math.MaxUint64); got != Buckets-1 {
		t.Errorf("the maximum duration is in bucket %d, want %d", got, Buckets-1)
	}
}

func TestBucketStart(t *testing.T) {
	for _, d := range []uint64{1, 2, 3, 1000, 1_000_000, 7_654_321} {
		if b := BucketOf(d); BucketStart(b) > float64(d) || BucketStart(b+1) <= float64(d) {
			t.Errorf("%d is not between %f and %f", d, BucketStart(b), BucketStart(b+1))
		}
		if b, want := HeatBucketOf(d), int(math.Floor(HeatBucketsPerOctave*math.Log2(float64(d)))); b != want {
			t.Errorf("%d is in bucket %d of heatmaps, want %d", d, b, want)
		}
	}
}

// errorBound is the documented error of quantiles, which are never too high, with a margin for
// floating-point rounding.
const errorBound = 0.0215

func TestQuantile(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for _, n := range []int{1, 2, 3, 10, 1000} {
		for range 20 {
			var h Histogram
			all := make([]uint64, n)
			for i := range all {
				all[i] = 1 + r.Uint64()>>r.IntN(64)>>1
				h.Observe(all[i])
			}
			slices.Sort(all)
			for _, q := range []float64{-1, 0, 0.001, 0.25, 0.5, 0.9, 0.95, 0.99, 1, 2} {
				rank := int(math.Ceil(min(max(q, 0), 1) * float64(n)))
				want := float64(all[max(rank, 1)-1])
				if got := h.Quantile(q); got > want || got < (1-errorBound)*want {
					t.Errorf("quantile %g of %d is %f, want %f", q, n, got, want)
				}
			}
		}
	}
	var few Histogram
	if few.Observe(1005); few.Quantile(0.5) != 1005 {
		t.Errorf("median of one duration is %f, want 1005", few.Quantile(0.5))
	}
	if few.Observe(1015); few.Quantile(0.5) > 1005 || few.Quantile(0.5) < (1-errorBound)*1005 { // of the same bucket
		t.Errorf("median of 1005 and 1015 is %f, want at most 1005", few.Quantile(0.5))
	}
	var zeros Histogram
	if zeros.ObserveN(0, 3); zeros.Quantile(0.5) != 1 {
		t.Errorf("median of zeros is %f, want 1", zeros.Quantile(0.5))
	}
	if got := new(Histogram).Quantile(0.5); got != 0 {
		t.Errorf("quantile of an empty histogram is %f, want 0", got)
	}
}

func TestHistogramAdd(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	var parts [5]Histogram
	var sum, all Histogram
	for i := range 2000 {
		d := r.Uint64() >> (20 + r.IntN(44))
		parts[i%4].Observe(d) // the last one stays empty
		all.Observe(d)
	}
	for i := range parts {
		sum.Add(&parts[i])
	}
	if got, want := buckets(&sum), buckets(&all); !slices.Equal(got, want) || sum.Sum != all.Sum || sum.Count() != 2000 {
		t.Errorf("got %v, sum %d; want %v, sum %d", got, sum.Sum, want, all.Sum)
	}
	if sum.Reset(); sum.Count() != 0 || sum.Sum != 0 {
		t.Error("histogram is not empty after Reset")
	}
	sum.Add(&all)
	if !slices.Equal(buckets(&sum), buckets(&all)) {
		t.Error("a histogram that was reset counts differently from a new one")
	}
}

func TestHistogramSumDoesNotOverflow(t *testing.T) {
	var h Histogram
	h.Observe(math.MaxUint64 - 1)
	h.Observe(1)
	if h.Observe(7); h.Sum != math.MaxUint64 || h.Count() != 3 {
		t.Errorf("sum %d, count %d", h.Sum, h.Count())
	}
}

// TestObserveN checks that ObserveN with n is the same as n calls of Observe.
func TestObserveN(t *testing.T) {
	var each, times Histogram
	for d := range uint64(100) {
		for range d + 1 {
			each.Observe(d * d * d)
		}
		times.ObserveN(d*d*d, d+1)
	}
	if !slices.Equal(buckets(&each), buckets(&times)) || each.Sum != times.Sum || times.Count() != 5050 {
		t.Errorf("sums %d and %d, count %d", each.Sum, times.Sum, times.Count())
	}
	for _, n := range []uint64{2, 1 << 24, math.MaxUint64} {
		var h Histogram
		if h.ObserveN(math.MaxUint64/2+1, n); h.Sum != math.MaxUint64 || h.Count() != n {
			t.Errorf("%d times: sum %d, count %d", n, h.Sum, h.Count())
		}
	}
}

// buckets returns the buckets of a histogram with their counts.
func buckets(h *Histogram) (out [][2]uint64) {
	first, counts := h.Counts()
	for i, n := range counts {
		if n > 0 {
			out = append(out, [2]uint64{uint64(first + i), n})
		}
	}
	return out
}
