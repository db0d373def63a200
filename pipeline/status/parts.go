package status

import (
	"cmp"
	"slices"
	"time"
)

// Arrivals are spans that arrived between two times, in a part of a store such as a file.
type Arrivals struct {
	First, Last  time.Time
	Spans, Bytes int64
}

// SetArrivals calculates Spans, Oldest, Parts, Gaps and Expiring of a store. It assumes that the
// spans of one element of all are spread evenly, and that they expire when the last one is older
// than Retention.
func (s *Store) SetArrivals(all []Arrivals, now time.Time) {
	all = slices.DeleteFunc(slices.Clone(all), func(a Arrivals) bool { return a.Spans == 0 })
	slices.SortFunc(all, func(a, b Arrivals) int { return a.First.Compare(b.First) })
	s.Spans, s.Parts, s.Gaps, s.Expiring = 0, []Part{}, []Gap{}, []Expiry{}
	for _, a := range all {
		s.Spans += a.Spans
	}
	if len(all) == 0 {
		return
	}
	s.Oldest = all[0].First
	s.setParts(all, now)
	s.setGaps(all, now)
	if s.Retention <= 0 {
		return
	}
	for _, within := range []time.Duration{time.Hour, 24 * time.Hour} {
		e := Expiry{Within: within}
		for _, a := range all {
			if a.Last.Before(now.Add(within - s.Retention)) {
				e.Spans += a.Spans
				e.Bytes += a.Bytes
			}
		}
		s.Expiring = append(s.Expiring, e)
	}
}

// setParts spreads spans over equal parts of the time from Oldest to now.
func (s *Store) setParts(all []Arrivals, now time.Time) {
	width := now.Sub(s.Oldest) / MaxParts
	if width <= 0 {
		return
	}
	share := make([]float64, MaxParts)
	index := func(t time.Time) int { return min(max(int(t.Sub(s.Oldest)/width), 0), MaxParts-1) }
	for _, a := range all {
		from, to := index(a.First), index(a.Last)
		length := a.Last.Sub(a.First)
		for i := from; i <= to; i++ {
			if length <= 0 {
				share[i] += float64(a.Spans)
				break
			}
			begin, end := s.Oldest.Add(time.Duration(i)*width), s.Oldest.Add(time.Duration(i+1)*width)
			overlap := min(end.Sub(a.First), a.Last.Sub(begin), width, length)
			share[i] += float64(a.Spans) * float64(max(overlap, 0)) / float64(length)
		}
	}
	for i, n := range share {
		s.Parts = append(s.Parts, Part{Start: s.Oldest.Add(time.Duration(i) * width), Spans: int64(n + 0.5)})
	}
}

// setGaps finds periods without arrivals, including the one between the last arrival and now.
func (s *Store) setGaps(all []Arrivals, now time.Time) {
	until := all[0].Last
	for _, a := range append(all[1:len(all):len(all)], Arrivals{First: now, Last: now}) {
		if a.First.Sub(until) >= MinGap {
			s.Gaps = append(s.Gaps, Gap{until, a.First})
		}
		if a.Last.After(until) {
			until = a.Last
		}
	}
	slices.SortFunc(s.Gaps, func(a, b Gap) int { return -cmp.Compare(a.To.Sub(a.From), b.To.Sub(b.From)) })
	s.Gaps = s.Gaps[:min(len(s.Gaps), MaxGaps)]
	slices.SortFunc(s.Gaps, func(a, b Gap) int { return a.From.Compare(b.From) })
}
