package tracestore

import (
	"math"
	"math/bits"
)

const (
	// BucketsPerOctave is how many buckets there are between a duration and twice that.
	BucketsPerOctave = 8
	// Buckets is how many buckets there are.
	Buckets = 64 * BucketsPerOctave
)

// BucketOf returns the number of the bucket that a duration in nanoseconds is in: floor(8 log2 duration), where 0 counts as 1. These are the
// buckets of OpenTelemetry's exponential histograms of scale 3, but for which of two an exact power of two is in.
func BucketOf(duration uint64) int {
	duration = max(duration, 1)
	zeros := bits.LeadingZeros64(duration)
	mantissa := duration << (zeros & 63)
	eighth := mantissa >> 60 & 7
	_, above := bits.Sub64(borders[eighth], mantissa, 0) // a comparison would be guessed wrong half of the time
	return (63-zeros)*BucketsPerOctave + int(eighth+above)
}

// borders has for each eighth of an octave, in which there is one border between two buckets, the greatest mantissa below that border:
// 2^(63 + (i + 1) / 8) rounded down. It is not changed.
var borders = [BucketsPerOctave]uint64{0x8b95c1e3ea8bd6e6, 0x9837f0518db8a96f, 0xa5fed6a9b15138ea, 0xb504f333f9de6484,
	0xc5672a115506dadd, 0xd744fccad69d6af4, 0xeac0c6e7dd24392e, math.MaxUint64}

// BucketStart returns the least duration, in nanoseconds, that may be in a bucket. It is the end of the bucket before.
func BucketStart(bucket int) float64 { return math.Exp2(float64(bucket) / BucketsPerOctave) }

// Histogram counts durations by [BucketOf]. A bucket is 9 % wide, so that its geometric middle is within 4.43 % (2^(1/16) - 1) of every
// duration in it. The zero value is empty. Not for concurrent use.
type Histogram struct {
	// Sum is the sum of the durations in nanoseconds; a sum that is too great is the greatest number.
	Sum    uint64
	first  int      // the bucket of counts[0]
	counts []uint64 // of the buckets between the first and the last that have any
}

// Observe counts one duration in nanoseconds.
func (h *Histogram) Observe(duration uint64) { h.ObserveN(duration, 1) }

// ObserveN counts one duration in nanoseconds n times, at least once.
func (h *Histogram) ObserveN(duration, n uint64) {
	h.AddBucket(BucketOf(duration), n)
	h.Sum = addUpTo(h.Sum, timesUpTo(duration, n))
}

// AddBucket counts n durations, at least one, of a bucket from 0 to Buckets-1. It leaves Sum to the caller.
func (h *Histogram) AddBucket(bucket int, n uint64) {
	h.reach(bucket)
	h.counts[bucket-h.first] += n
}

// Add counts all that o counts.
func (h *Histogram) Add(o *Histogram) {
	if len(o.counts) == 0 {
		return
	}
	if len(h.counts) == 0 {
		h.first, h.counts, h.Sum = o.first, append(h.counts, o.counts...), o.Sum
		return
	}
	h.reach(o.first)
	h.reach(o.first + len(o.counts) - 1)
	to := h.counts[o.first-h.first:]
	for i, n := range o.counts {
		to[i] += n
	}
	h.Sum = addUpTo(h.Sum, o.Sum)
}

// Reset empties the histogram and keeps its memory.
func (h *Histogram) Reset() { h.Sum, h.counts = 0, h.counts[:0] }

// Count returns how many durations were counted.
func (h *Histogram) Count() uint64 {
	n := uint64(0)
	for _, c := range h.counts {
		n += c
	}
	return n
}

// Counts returns the counts of consecutive buckets, the number of whose first is given. The first and the last are not 0, and all others
// than these are. They are valid until the next call of another method and must not be changed.
func (h *Histogram) Counts() (first int, counts []uint64) { return h.first, h.counts }

// Quantile returns, in nanoseconds, the duration that a share q of all is not longer than: of n durations the one at place q * n, rounded
// up. It is within 4.43 % of the true one. Of nothing it is 0.
func (h *Histogram) Quantile(q float64) float64 {
	n := h.Count()
	if n == 0 {
		return 0
	}
	place := uint64(math.Ceil(min(max(q, 0), 1) * float64(n)))
	place = min(max(place, 1), n)
	for i, c := range h.counts {
		if c >= place {
			return middle(h.first + i)
		}
		place -= c
	}
	return middle(h.first + len(h.counts) - 1)
}

// middle returns the geometric middle of a bucket.
func middle(bucket int) float64 { return math.Exp2((float64(bucket) + 0.5) / BucketsPerOctave) }

// reach makes room for a bucket, which then gets a count.
func (h *Histogram) reach(bucket int) {
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

// addUpTo returns the sum, or the greatest number where it exceeds that.
func addUpTo(a, b uint64) uint64 {
	if sum := a + b; sum >= a {
		return sum
	}
	return ^uint64(0)
}

// timesUpTo returns the product, or the greatest number where it exceeds that.
func timesUpTo(a, b uint64) uint64 {
	if hi, product := bits.Mul64(a, b); hi == 0 {
		return product
	}
	return ^uint64(0)
}
