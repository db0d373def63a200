package tracestore

import (
	"math"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Measure says what Numbers hold.
type Measure uint8

// The measures.
const (
	MeasureNone         Measure = iota // nothing
	MeasureTotals                      // Count, Sum, Min and Max
	MeasureDistribution                // also Buckets
	numMeasures
)

// Numbers describe the numbers that some spans have in a field: integers and floats as 64-bit
// floats, durations in nanoseconds. Infinities and NaN do not count. A span with several numbers
// counts with the first one.
type Numbers struct {
	Count         uint64
	Sum, Min, Max float64
	Buckets       []NumberBucket // sorted by Bucket; none is empty
}

// NumberBucket counts numbers by [NumberBucketOf].
type NumberBucket struct {
	Bucket int
	Count  uint64
}

// NumberOf returns the first number among the values of a field.
func NumberOf(f Field, s Span) (n float64, ok bool) {
	f.visit(s, func(v otlpdata.Value) bool {
		n, ok = MeasuredNumber(v)
		return !ok
	})
	return n, ok
}

// MeasuredNumber returns the number that a value counts as in Numbers.
func MeasuredNumber(v otlpdata.Value) (n float64, ok bool) {
	n, ok = number(v)
	return n, ok && !math.IsNaN(n) && !math.IsInf(n, 0)
}

// smallestNumber is the number of octaves below 1 of the smallest float, and one more.
const smallestNumber = 1075

// NumberBucketOf returns the bucket of a number. Buckets are in the order of the numbers. A bucket
// of positive numbers ends with 2^(n/32) for an integer n, which belongs to it, and begins after
// 2^((n-1)/32). Buckets of negative numbers have the same bounds with another sign. The number 0
// has a bucket of its own.
func NumberBucketOf(x float64) int {
	n := smallestNumber*BucketsPerOctave + int(math.Ceil(BucketsPerOctave*math.Log2(math.Abs(x))))
	switch {
	case x > 0:
		return n
	case x < 0:
		return -n
	}
	return 0
}

// NumberBucketEnd returns the bound of a bucket of NumberBucketOf that is farthest from 0.
func NumberBucketEnd(bucket int) float64 {
	switch {
	case bucket > 0:
		return math.Exp2(float64(bucket)/BucketsPerOctave - smallestNumber)
	case bucket < 0:
		return -math.Exp2(float64(-bucket)/BucketsPerOctave - smallestNumber)
	}
	return 0
}

// Observe counts a number n times, and returns how many buckets were added.
func (s *Numbers) Observe(x float64, n uint64, m Measure) (added int) {
	s.addTotals(&Numbers{Count: n, Sum: x * float64(n), Min: x, Max: x})
	if m != MeasureDistribution {
		return 0
	}
	return s.addBucket(NumberBucketOf(x), n)
}

// Add adds the numbers of o, and returns how many buckets were added.
func (s *Numbers) Add(o *Numbers) (added int) {
	if o.Count == 0 {
		return 0
	}
	s.addTotals(o)
	if len(s.Buckets) == 0 {
		s.Buckets = append(s.Buckets, o.Buckets...)
		return len(o.Buckets)
	}
	for _, b := range o.Buckets {
		added += s.addBucket(b.Bucket, b.Count)
	}
	return added
}

func (s *Numbers) addTotals(o *Numbers) {
	if s.Count == 0 {
		s.Min, s.Max = o.Min, o.Max
	}
	s.Count += o.Count
	s.Sum += o.Sum
	s.Min, s.Max = min(s.Min, o.Min), max(s.Max, o.Max)
}

func (s *Numbers) addBucket(bucket int, n uint64) (added int) {
	i, found := slices.BinarySearchFunc(s.Buckets, bucket, func(b NumberBucket, at int) int { return b.Bucket - at })
	if found {
		s.Buckets[i].Count += n
		return 0
	}
	s.Buckets = slices.Insert(s.Buckets, i, NumberBucket{bucket, n})
	return 1
}

// Quantile returns the q-quantile: the number with rank q * n, rounded up, among n numbers. For
// positive numbers, the result is at most 2.2 % too high and never too low. It is never outside of
// Min and Max, and 0 if there are no numbers.
func (s *Numbers) Quantile(q float64) float64 {
	if s.Count == 0 {
		return 0
	}
	rank := uint64(math.Ceil(min(max(q, 0), 1) * float64(s.Count)))
	rank = min(max(rank, 1), s.Count)
	for _, b := range s.Buckets {
		if b.Count >= rank {
			return min(max(NumberBucketEnd(b.Bucket), s.Min), s.Max)
		}
		rank -= b.Count
	}
	return s.Max
}
