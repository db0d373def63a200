package tracestore

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

const (
	// BucketsPerOctave is the number of buckets between a duration and twice that duration.
	BucketsPerOctave = 8
	// Buckets is the number of buckets.
	Buckets = 64 * BucketsPerOctave
)

// BucketOf returns the bucket of a duration in nanoseconds: floor(8 log2 duration), where 0 counts
// as 1. The buckets are those of OpenTelemetry's exponential histograms with scale 3, except that
// an exact power of two belongs to the bucket that begins with it.
func BucketOf(duration uint64) int {
	duration = max(duration, 1)
	zeros := bits.LeadingZeros64(duration)
	mantissa := duration << (zeros & 63)
	eighth := mantissa >> 60 & 7
	_, above := bits.Sub64(borders[eighth], mantissa, 0) // avoids a branch that is mispredicted half of the time
	return (63-zeros)*BucketsPerOctave + int(eighth+above)
}

// borders holds the largest mantissa below the one bucket border in each eighth of an octave: 2^(63
// + (i + 1) / 8), rounded down. It is constant.
var borders = [BucketsPerOctave]uint64{0x8b95c1e3ea8bd6e6, 0x9837f0518db8a96f, 0xa5fed6a9b15138ea, 0xb504f333f9de6484,
	0xc5672a115506dadd, 0xd744fccad69d6af4, 0xeac0c6e7dd24392e, math.MaxUint64}

// BucketStart returns the lower bound of a bucket in nanoseconds, which is the upper bound of the
// bucket before it.
func BucketStart(bucket int) float64 { return math.Exp2(float64(bucket) / BucketsPerOctave) }

// Histogram counts durations by [BucketOf]. A bucket is 9 % wide, so every duration in it is within
// 4.43 % (2^(1/16) - 1) of its geometric mean. The zero value is empty. Not safe for concurrent
// use.
type Histogram struct {
	// Sum is the sum of the durations in nanoseconds, or the maximum uint64 if the sum overflows.
	Sum    uint64
	first  int      // the bucket of counts[0]
	counts []uint64 // from the first to the last bucket that is not empty
}

// Observe counts one duration in nanoseconds.
func (h *Histogram) Observe(duration uint64) { h.ObserveN(duration, 1) }

// ObserveN counts one duration in nanoseconds n times. n must be at least 1.
func (h *Histogram) ObserveN(duration, n uint64) {
	h.AddBucket(BucketOf(duration), n)
	h.Sum = saturatingAdd(h.Sum, saturatingMul(duration, n))
}

// AddBucket counts n durations of a bucket from 0 to Buckets-1. n must be at least 1. It does not
// change Sum.
func (h *Histogram) AddBucket(bucket int, n uint64) {
	h.extendTo(bucket)
	h.counts[bucket-h.first] += n
}

// Add adds the counts and the sum of o.
func (h *Histogram) Add(o *Histogram) {
	if len(o.counts) == 0 {
		return
	}
	if len(h.counts) == 0 {
		h.first, h.counts, h.Sum = o.first, append(h.counts, o.counts...), o.Sum
		return
	}
	h.extendTo(o.first)
	h.extendTo(o.first + len(o.counts) - 1)
	to := h.counts[o.first-h.first:]
	for i, n := range o.counts {
		to[i] += n
	}
	h.Sum = saturatingAdd(h.Sum, o.Sum)
}

// Reset empties the histogram and keeps its memory.
func (h *Histogram) Reset() { h.Sum, h.counts = 0, h.counts[:0] }

// Count returns the number of durations.
func (h *Histogram) Count() uint64 {
	n := uint64(0)
	for _, c := range h.counts {
		n += c
	}
	return n
}

// HistogramOf returns a histogram with the given sum and the counts of consecutive buckets,
// beginning with bucket first, as Counts returns them. It keeps counts. Buckets that do not exist
// and empty ones at the ends are errors.
func HistogramOf(sum uint64, first int, counts []uint64) (Histogram, error) {
	n := len(counts)
	switch {
	case n == 0:
		return Histogram{Sum: sum}, nil
	case first < 0 || first > Buckets-n:
		return Histogram{}, fmt.Errorf("histogram buckets %d to %d are not from 0 to %d", first, first+n-1, Buckets-1)
	case counts[0] == 0 || counts[n-1] == 0:
		return Histogram{}, errors.New("histogram begins or ends with an empty bucket")
	}
	return Histogram{Sum: sum, first: first, counts: counts}, nil
}

// Counts returns the counts of consecutive buckets, beginning with bucket first. The first and the
// last count are not 0, and all buckets outside of them are empty. The slice is valid until the
// next call of another method and must not be changed.
func (h *Histogram) Counts() (first int, counts []uint64) { return h.first, h.counts }

// Quantile returns the q-quantile in nanoseconds, within 4.43 %: of n durations the one with rank q
// * n, rounded up. It returns 0 for an empty histogram.
func (h *Histogram) Quantile(q float64) float64 {
	n := h.Count()
	if n == 0 {
		return 0
	}
	rank := uint64(math.Ceil(min(max(q, 0), 1) * float64(n)))
	rank = min(max(rank, 1), n)
	for i, c := range h.counts {
		if c >= rank {
			return middle(h.first + i)
		}
		rank -= c
	}
	return middle(h.first + len(h.counts) - 1)
}

// middle returns the geometric mean of the bounds of a bucket.
func middle(bucket int) float64 { return math.Exp2((float64(bucket) + 0.5) / BucketsPerOctave) }

// extendTo extends counts to a bucket. The caller must then count something in it.
func (h *Histogram) extendTo(bucket int) {
	last := h.first + len(h.counts) - 1
	switch {
	case len(h.counts) == 0:
		h.first, h.counts = bucket, append(h.counts, 0)
	case bucket < h.first:
		before := h.first - bucket
		h.counts = append(h.counts, make([]uint64, before)...)
		copy(h.counts[before:], h.counts)
		clear(h.counts[:before])
		h.first = bucket
	case bucket > last:
		h.counts = append(h.counts, make([]uint64, bucket-last)...)
	}
}

// saturatingAdd returns a + b, or the maximum uint64 if the sum overflows.
func saturatingAdd(a, b uint64) uint64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return ^uint64(0)
}

// saturatingMul returns a * b, or the maximum uint64 if the product overflows.
func saturatingMul(a, b uint64) uint64 {
	if hi, product := bits.Mul64(a, b); hi == 0 {
		return product
	}
	return ^uint64(0)
}
