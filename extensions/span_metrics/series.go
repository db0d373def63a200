package spanmetrics

import (
	"math"
	"math/bits"
	"sort"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// other is the name in the labels of what is counted together because of max_series. The store has
// the same name for operations beyond its limit.
const other = tracestore.OtherOperation

// spanKey identifies the spans that are counted together.
type spanKey struct{ service, operation, kind string }

// edgeKey identifies the calls that are counted together.
type edgeKey struct{ client, server, connection string }

func otherSpans(k spanKey) spanKey { return spanKey{other, other, k.kind} }
func otherEdges(edgeKey) edgeKey   { return edgeKey{client: other, server: other} }

// counts are numbers of spans.
type counts struct {
	succeeded, failed uint64
	duration          uint64   // sum in nanoseconds
	buckets           []uint64 // by duration; the last one has no upper bound
}

// add adds the spans of a point or an edge.
func (c *counts) add(calls, errors uint64, durations *tracestore.Histogram, bounds []time.Duration) {
	c.failed += errors
	c.succeeded += calls - min(errors, calls)
	c.duration = sumOf(c.duration, durations.Sum)
	if c.buckets == nil {
		c.buckets = make([]uint64, len(bounds)+1)
	}
	first, of := durations.Counts()
	for i, n := range of {
		if n > 0 {
			c.buckets[bucketOf(first+i, bounds)] += n
		}
	}
}

// bucketOf returns the bucket with the middle of one of the store's buckets, which are 2.2 % wide.
func bucketOf(stored int, bounds []time.Duration) int {
	middle := math.Sqrt(tracestore.BucketStart(stored) * tracestore.BucketStart(stored+1))
	return sort.Search(len(bounds), func(i int) bool { return float64(bounds[i]) >= middle })
}

// addAll adds all of o.
func (c *counts) addAll(o *counts) { (&counts{}).raise(o, c) }

// raise raises each number to the one in now, if that is higher, and adds the differences to total.
// What a store counts may fall, for example when it finds duplicates or deletes spans, but counters
// must not. It reports whether there are more spans.
func (c *counts) raise(now, total *counts) bool {
	if len(c.buckets) < len(now.buckets) {
		c.buckets = append(c.buckets, make([]uint64, len(now.buckets)-len(c.buckets))...)
	}
	if len(total.buckets) < len(now.buckets) {
		total.buckets = append(total.buckets, make([]uint64, len(now.buckets)-len(total.buckets))...)
	}
	higher := func(from, to, sum *uint64) bool {
		if *to <= *from {
			return false
		}
		*sum = sumOf(*sum, *to-*from)
		*from = *to
		return true
	}
	succeeded := higher(&c.succeeded, &now.succeeded, &total.succeeded)
	failed := higher(&c.failed, &now.failed, &total.failed)
	higher(&c.duration, &now.duration, &total.duration)
	for i := range now.buckets {
		higher(&c.buckets[i], &now.buckets[i], &total.buckets[i])
	}
	return succeeded || failed
}

// sumOf returns a + b, or the maximum if the sum overflows.
func sumOf(a, b uint64) uint64 {
	if sum, carry := bits.Add64(a, b, 0); carry == 0 {
		return sum
	}
	return math.MaxUint64
}

// series has the counters of one key.
type series struct {
	total     counts
	next      counts             // is added to total at the next update
	periods   map[uint64]*counts // what was last counted, by the start of the period
	grew      time.Time
	exemplars []prometheus.Exemplar // the latest one of each bucket; Labels is nil if there is none
}

// family has the series of one kind of key.
type family[K comparable] struct {
	limit  int
	other  func(K) K // the key for keys beyond the limit
	series map[K]*series
}

func newFamily[K comparable](limit int, other func(K) K) *family[K] {
	return &family[K]{limit: limit, other: other, series: map[K]*series{}}
}

// numbers are what a store has counted: by key, then by the start of the period.
type numbers[K comparable] struct {
	family *family[K]
	of     map[K]map[uint64]*counts
	added  int        // keys that have no series yet
	noted  map[K]bool // keys whose spans were counted with other keys before
}

// newNumbers returns empty numbers.
func (f *family[K]) newNumbers() *numbers[K] {
	return &numbers[K]{family: f, of: map[K]map[uint64]*counts{}, noted: map[K]bool{}}
}

// at returns the counts of a key in a period. If max_series is reached, new keys share the counts
// of the key for others.
func (n *numbers[K]) at(k K, start uint64) *counts {
	if n.of[k] == nil && n.family.series[k] == nil {
		if len(n.family.series)+n.added >= n.family.limit {
			k = n.family.other(k)
		} else {
			n.added++
		}
	}
	if n.of[k] == nil {
		n.of[k] = map[uint64]*counts{}
	}
	c := n.of[k][start]
	if c == nil {
		c = &counts{}
		n.of[k][start] = c
	}
	return c
}

// update adds to each series what has been counted since the previous update. first is true for the
// first update, which only notes what was counted before. A new series has the value 0 until the
// next update, so that its growth can be seen. The periods before the given one are forgotten.
// update returns the keys that have grown.
func (f *family[K]) update(now *numbers[K], first bool, before uint64, at time.Time) (grown []K) {
	f.addNext()
	for k, periods := range now.of {
		s := f.series[k]
		to := &counts{} // forgotten
		switch {
		case s == nil:
			s = &series{periods: map[uint64]*counts{}, grew: at}
			f.series[k] = s
			if !first && !now.noted[k] {
				to = &s.next
			}
		case !first && !now.noted[k]:
			to = &s.total
		}
		grew := false
		for start, c := range periods {
			was := s.periods[start]
			if was == nil {
				was = &counts{}
				s.periods[start] = was
			}
			grew = was.raise(c, to) || grew
		}
		if grew {
			s.grew = at
			grown = append(grown, k)
		}
	}
	for _, s := range f.series {
		for start := range s.periods {
			if start < before {
				delete(s.periods, start)
			}
		}
	}
	return grown
}

// addNext adds what new series have counted.
func (f *family[K]) addNext() {
	for _, s := range f.series {
		s.total.addAll(&s.next)
		s.next = counts{}
	}
}

// expire removes the series that have not grown since the given time.
func (f *family[K]) expire(since time.Time) {
	for k, s := range f.series {
		if s.grew.Before(since) {
			delete(f.series, k)
		}
	}
}
