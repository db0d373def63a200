package where

import (
	"fmt"
	"math"
	"sort"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Bucket returns the expression of tracestore.BucketOf of a column with durations, a UInt16.
func Bucket(duration string) string { return bucketOf(duration, tracestore.BucketsPerOctave) }

// HeatBucket is like Bucket, for tracestore.HeatBucketOf.
func HeatBucket(duration string) string { return bucketOf(duration, tracestore.HeatBucketsPerOctave) }

// HeatBucketsOf returns the expression of tracestore.HeatBucket of a column with arrays of buckets.
func HeatBucketsOf(buckets string) string {
	return fmt.Sprintf("arrayMap(b -> toUInt16(intDiv(b, %d)), %s)", tracestore.BucketsPerOctave/tracestore.HeatBucketsPerOctave, buckets)
}

// bucketOf returns the expression of a bucket if there are some buckets per octave.
//
// Shifted until its highest bit is set, a duration is compared with the bucket borders of the
// highest octave.
func bucketOf(duration string, perOctave int) string {
	octave := "toUInt16(round(log2(roundToExp2(bitOr(" + duration + ", 1)))))" // the logarithm of a power of two is exact
	const highest = 63
	shifted := fmt.Sprintf("bitShiftLeft(%s, toUInt8(%d - %s))", duration, highest, octave)
	var b strings.Builder
	fmt.Fprintf(&b, "toUInt16(%d * %s", perOctave, octave)
	for i := 1; i < perOctave; i++ {
		border := highest*tracestore.BucketsPerOctave + i*tracestore.BucketsPerOctave/perOctave
		fmt.Fprintf(&b, " + (%s >= %s)", shifted, Uint(bucketStart(border)))
	}
	return b.String() + ")"
}

// bucketStart returns the shortest duration in a bucket of the highest octave.
func bucketStart(bucket int) uint64 {
	const first = uint64(1) << 63
	return first + uint64(sort.Search(math.MaxInt64, func(i int) bool { return tracestore.BucketOf(first+uint64(i)) >= bucket }))
}
