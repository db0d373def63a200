package adaptive

import (
	"time"

	"github.com/tracing-backend/tracing/pipeline/sampling"
)

// History is what all collectors saw, by operation, in buckets of equal length.
type History struct {
	Until  time.Time     // the end of the newest bucket
	Length time.Duration // of a bucket
	Keep   int           // buckets
	// Covered: so many of the buckets hold what at least one collector saw, were it nothing.
	Covered int
	All     map[sampling.Target][]Bucket // Keep buckets of each, the newest first
}

// Bucket is what was seen of an operation in an interval.
type Bucket struct {
	Seen    []sampling.Seen
	Bounded int64
}

// NewHistory joins what collectors saw. Intervals of other collectors that are shorter, or end at other times, belong to the bucket in which
// they end. A bucket is left empty in which a collector died: some of the traces that began then were counted by nobody. all reaches one
// bucket further back than the history.
func NewHistory(all []sampling.Throughput, until time.Time, length time.Duration, keep int) *History {
	h := &History{Until: until, Length: length, Keep: keep, All: map[sampling.Target][]Bucket{}}
	saidBy := make([]map[string]bool, keep+1) // who said something, and whether that was the last of it
	index := func(t *sampling.Throughput) (int, bool) {
		age := until.Sub(t.Until)
		return int(age / length), age >= 0 && int(age/length) <= keep
	}
	for i := range all {
		if b, ok := index(&all[i]); ok {
			if saidBy[b] == nil {
				saidBy[b] = map[string]bool{}
			}
			saidBy[b][all[i].By] = saidBy[b][all[i].By] || all[i].Last
		}
	}
	for i := range all {
		b, ok := index(&all[i])
		if !ok || b == keep || died(saidBy[b+1], saidBy[b]) {
			continue
		}
		for j := range all[i].Rows {
			h.add(&all[i].Rows[j], b)
		}
	}
	for _, by := range saidBy[:keep] {
		if by != nil {
			h.Covered++
		}
	}
	return h
}

// died reports whether a collector said something before, was not stopped, and then is silent.
func died(before, then map[string]bool) bool {
	for by, last := range before {
		if _, said := then[by]; !said && !last {
			return true
		}
	}
	return false
}

func (h *History) add(r *sampling.Row, i int) {
	buckets, ok := h.All[r.Target]
	if !ok {
		buckets = make([]Bucket, h.Keep)
		h.All[r.Target] = buckets
	}
	b := &buckets[i]
	b.Bounded += r.Bounded
	for _, s := range r.Seen {
		b.add(s)
	}
}

func (b *Bucket) add(s sampling.Seen) {
	for i := range b.Seen {
		if same(s.Probability, b.Seen[i].Probability) {
			b.Seen[i].Count += s.Count
			return
		}
	}
	b.Seen = append(b.Seen, s)
}

// sample is what a bucket says of how many traces began: exposure seconds of all traces were looked at, and count were found in them. It
// says nothing where exposure is 0.
type sample struct{ count, exposure float64 }

// sample estimates a bucket. least is the probability of clients that do not say which one they have.
//
// Each trace stands for 1/p. Where there are several p, the traces count as many as would be as certain if they had one: few with a small p
// among many with a great one say little, and most of what is estimated rests on them.
func (b *Bucket) sample(length time.Duration, least float64) sample {
	var begun, variance, sum float64
	for _, s := range b.Seen {
		n := float64(s.Count)
		begun, variance, sum = begun+n/s.Probability, variance+n/(s.Probability*s.Probability), sum+s.Probability
	}
	seconds := length.Seconds()
	switch {
	case begun > 0:
		count := begun * begun / variance
		return sample{count, seconds * count / begun}
	case len(b.Seen) > 0:
		return sample{0, seconds * sum / float64(len(b.Seen))}
	case b.Bounded > 0:
		return sample{0, seconds * least}
	}
	return sample{}
}
