package tracestore

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
)

const (
	// BucketsPerOctave is the number of buckets between a duration and twice that duration.
	BucketsPerOctave = 32
	// Buckets is the number of buckets.
	Buckets = 64 * BucketsPerOctave
	// HeatBucketsPerOctave is like BucketsPerOctave, for heatmaps.
	HeatBucketsPerOctave = 8
	// HeatBuckets is the number of buckets of heatmaps.
	HeatBuckets = 64 * HeatBucketsPerOctave
)

// BucketOf returns the bucket of a duration in nanoseconds: floor(32 log2 duration), where 0 counts
// as 1. The borders are as in OpenTelemetry's exponential histograms with scale 5, except that
// an exact power of two belongs to the bucket that begins with it.
func BucketOf(duration uint64) int {
	duration = max(duration, 1)
	zeros := bits.LeadingZeros64(duration)
	mantissa := duration << (zeros & 63)
	p := &octaveParts[mantissa>>(63-octavePartBits)&(1<<octavePartBits-1)]
	_, above := bits.Sub64(p.border, mantissa, 0) // avoids a branch that is mispredicted half of the time
	return (63-zeros)*BucketsPerOctave + int(p.bucket+above)
}

// octavePartBits divides an octave into parts that have at most one bucket border each.
const octavePartBits = 6

// octavePart is a part of the octave from 1<<63 on: the bucket at its beginning, and the largest
// number below the bucket border in it, or the maximum if it has none.
type octavePart struct{ bucket, border uint64 }

// octaveParts is constant.
var octaveParts = func() (parts [1 << octavePartBits]octavePart) {
	border := 1
	for i := range parts {
		end := uint64(1)<<63 + uint64(i)<<(63-octavePartBits) + (1<<(63-octavePartBits) - 1)
		parts[i] = octavePart{uint64(border - 1), math.MaxUint64}
		if b := belowBorder(border); b < end {
			parts[i].border = b
			border++
		}
	}
	return parts
}()

// belowBorder returns the largest number below a bucket border in the octave from 1<<63 on: 2^(63 +
// border/32), rounded down.
func belowBorder(border int) uint64 {
	if border == BucketsPerOctave {
		return math.MaxUint64
	}
	x := new(big.Int).Lsh(big.NewInt(1), uint(63*BucketsPerOctave+border))
	for root := 1; root < BucketsPerOctave; root *= 2 {
		x.Sqrt(x)
	}
	return x.Uint64()
}

// BucketStart returns the lower bound of a bucket in nanoseconds, which is the upper bound of the
// bucket before it.
func BucketStart(bucket int) float64 { return math.Exp2(float64(bucket) / BucketsPerOctave) }

// HeatBucketOf returns the bucket of heatmaps of a duration in nanoseconds: floor(8 log2 duration),
// where 0 counts as 1.
func HeatBucketOf(duration uint64) int { return HeatBucket(BucketOf(duration)) }

// HeatBucket returns the bucket of heatmaps that contains a bucket.
func HeatBucket(bucket int) int { return bucket / (BucketsPerOctave / HeatBucketsPerOctave) }

// Histogram counts durations by [BucketOf]. A bucket is 2.2 % wide (2^(1/32) - 1). The zero value
// is empty. A Histogram is not safe for concurrent use.
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
// beginning with bucket first, as Counts returns them. It retains counts. Buckets out of range and
// empty buckets at the ends are errors.
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
// next call of another method and must not be modified.
func (h *Histogram) Counts() (first int, counts []uint64) { return h.first, h.counts }

// Quantile returns the q-quantile in nanoseconds: the duration with rank q * n, rounded up, among n
// durations. The result is at most 2.2 % too low and never too high; it is exact for a single
// duration. A duration of 0 counts as 1. The result is 0 for an empty histogram.
func (h *Histogram) Quantile(q float64) float64 {
	n := h.Count()
	if n == 0 {
		return 0
	}
	if n == 1 {
		return min(max(float64(h.Sum), BucketStart(h.first)), BucketStart(h.first+1))
	}
	rank := uint64(math.Ceil(min(max(q, 0), 1) * float64(n)))
	rank = min(max(rank, 1), n)
	for i, c := range h.counts {
		if c >= rank {
			return BucketStart(h.first + i)
		}
		rank -= c
	}
	return BucketStart(h.first + len(h.counts) - 1)
}

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
