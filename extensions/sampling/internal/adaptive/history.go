package adaptive

import (
	"time"

	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// History holds the counts of all collectors, by operation, in buckets of equal length.
type History struct {
	Until  time.Time     // end of the newest bucket
	Length time.Duration // of a bucket
	Size   int           // number of buckets
	// Covered is the number of buckets for which at least one collector has reported, even if it
	// has no counts.
	Covered int
	All     map[sampling.OperationKey][]Bucket // Size buckets for each operation, the newest first
}

// Bucket holds the counts of an operation in an interval.
type Bucket struct {
	Counts       []sampling.ProbabilityCount
	ByLowerBound int64
}

// NewHistory joins the counts of all collectors. Intervals that are shorter than a bucket, or end
// at other times, belong to the bucket in which they end. If a collector crashed during a bucket,
// the bucket stays empty, because some of the traces that began then were not counted. all must
// reach one bucket further back than the history.
func NewHistory(all []sampling.Throughput, until time.Time, length time.Duration, size int) *History {
	h := &History{Until: until, Length: length, Size: size, All: map[sampling.OperationKey][]Bucket{}}
	// By bucket: the collectors that reported, and whether it was their last report.
	reporters := make([]map[string]bool, size+1)
	index := func(t *sampling.Throughput) (int, bool) {
		age := until.Sub(t.Until)
		return int(age / length), age >= 0 && int(age/length) <= size
	}
	for i := range all {
		if b, ok := index(&all[i]); ok {
			if reporters[b] == nil {
				reporters[b] = map[string]bool{}
			}
			reporters[b][all[i].By] = reporters[b][all[i].By] || all[i].Last
		}
	}
	for i := range all {
		b, ok := index(&all[i])
		if !ok || b == size || crashed(reporters[b+1], reporters[b]) {
			continue
		}
		for j := range all[i].Rows {
			h.addRow(&all[i].Rows[j], b)
		}
	}
	for _, by := range reporters[:size] {
		if by != nil {
			h.Covered++
		}
	}
	return h
}

// crashed reports whether a collector reported in the bucket before, was not stopped, and did not
// report in the next one.
func crashed(before, next map[string]bool) bool {
	for by, last := range before {
		if _, reported := next[by]; !reported && !last {
			return true
		}
	}
	return false
}

// addRow adds counts of an operation to bucket i.
func (h *History) addRow(r *sampling.ThroughputRow, i int) {
	buckets, ok := h.All[r.OperationKey]
	if !ok {
		buckets = make([]Bucket, h.Size)
		h.All[r.OperationKey] = buckets
	}
	b := &buckets[i]
	b.ByLowerBound += r.ByLowerBound
	for _, s := range r.Counts {
		b.addCount(s)
	}
}

// addCount adds a count. Equal probabilities are joined.
func (b *Bucket) addCount(s sampling.ProbabilityCount) {
	for i := range b.Counts {
		if same(s.Probability, b.Counts[i].Probability) {
			b.Counts[i].Count += s.Count
			return
		}
	}
	b.Counts = append(b.Counts, s)
}

// sample is the evidence of a bucket for the rate of new traces: count traces in exposure seconds
// during which all traces were sampled. A bucket without information has exposure 0.
type sample struct{ count, exposure float64 }

// sample returns the sample of a bucket. minimum is the assumed probability if clients do not
// report one.
//
// Each sampled trace stands for 1/p traces. With several p, the count is the number of traces with
// a single p that would give the same certainty. Few traces with a small p among many with a large
// p contribute most of the estimate, but little certainty.
func (b *Bucket) sample(length time.Duration, minimum float64) sample {
	var begun, variance, sum float64
	for _, s := range b.Counts {
		n := float64(s.Count)
		begun, variance, sum = begun+n/s.Probability, variance+n/(s.Probability*s.Probability), sum+s.Probability
	}
	seconds := length.Seconds()
	switch {
	case begun > 0:
		count := begun * begun / variance
		return sample{count, seconds * count / begun}
	case len(b.Counts) > 0:
		return sample{0, seconds * sum / float64(len(b.Counts))}
	case b.ByLowerBound > 0:
		return sample{0, seconds * minimum}
	}
	return sample{}
}
