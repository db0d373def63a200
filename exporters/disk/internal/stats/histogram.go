package stats

import (
	"math"
	"math/bits"
)

const (
	perOctave = 8
	// Buckets is how many buckets there are.
	Buckets = 64 * perOctave
)

// Bucket returns the number of the bucket that a duration is in.
func Bucket(duration uint64) int {
	duration = max(duration, 1)
	zeros := bits.LeadingZeros64(duration)
	mantissa := duration << (zeros & 63)
	eighth := mantissa >> 60 & 7
	_, above := bits.Sub64(borders[eighth], mantissa, 0) // a comparison would be guessed wrong half of the time
	return (63-zeros)*perOctave + int(eighth+above)
}

// borders has for each eighth of an octave, in which there is one border between two buckets, the greatest mantissa below that border:
// 2^(63 + (i + 1) / 8) rounded down. It is not changed.
var borders = [perOctave]uint64{0x8b95c1e3ea8bd6e6, 0x9837f0518db8a96f, 0xa5fed6a9b15138ea, 0xb504f333f9de6484,
	0xc5672a115506dadd, 0xd744fccad69d6af4, 0xeac0c6e7dd24392e, math.MaxUint64}

// BucketStart returns the least duration that may be in a bucket. It is the end of the bucket before.
func BucketStart(bucket int) float64 { return math.Exp2(float64(bucket) / perOctave) }

// Histogram counts durations by bucket. The zero value is empty.
type Histogram struct {
	// Sum is the sum of the durations; a sum that is too great is the greatest number.
	Sum    uint64
	first  int      // the bucket of counts[0]
	counts []uint64 // of the buckets between the first and the last that have any
}

// Observe counts one duration.
func (h *Histogram) Observe(duration uint64) {
	h.add(Bucket(duration), 1)
	h.Sum = sumUp(h.Sum, duration)
}

// Add counts all that o counts.
func (h *Histogram) Add(o *Histogram) {
	if len(o.counts) == 0 {
		return
	}
	h.reach(o.first)
	h.reach(o.first + len(o.counts) - 1)
	to := h.counts[o.first-h.first:]
	for i, n := range o.counts {
		to[i] += n
	}
	h.Sum = sumUp(h.Sum, o.Sum)
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

// Each calls visit for the buckets that are not empty, in order.
func (h *Histogram) Each(visit func(bucket int, count uint64)) {
	for i, n := range h.counts {
		if n > 0 {
			visit(h.first+i, n)
		}
	}
}

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
func middle(bucket int) float64 { return math.Exp2((float64(bucket) + 0.5) / perOctave) }

func (h *Histogram) add(bucket int, n uint64) {
	h.reach(bucket)
	h.counts[bucket-h.first] += n
}

// reach makes room for a bucket.
func (h *Histogram) reach(bucket int) {
	switch {
	case len(h.counts) == 0:
		h.first, h.counts = bucket, append(h.counts, 0)
	case bucket < h.first:
		before := h.first - bucket
		h.counts = append(h.counts, make([]uint64, before)...)
		copy(h.counts[before:], h.counts)
		clear(h.counts[:before])
		h.first = bucket
	default:
		for h.first+len(h.counts) <= bucket {
			h.counts = append(h.counts, 0)
		}
	}
}

func sumUp(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	return sum | -carry
}
