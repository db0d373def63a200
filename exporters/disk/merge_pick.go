package disk

import (
	"slices"
	"time"
)

// rules say which segments are merged, at one moment.
type rules struct {
	least, most  int           // segments in a merge
	rows, traces int           // most of all of them together
	bytes        int64         // the same; 0: any number
	arrivals     time.Duration // most between the first and the last arrival; 0: any time
	over         string        // no segment comes any more to the days before this one
	unflushed    []uint64      // epochs that are not segments yet, or whose logs are still there

	// fits reports whether there is, or can be made by the expiry of so many bytes of older segments, room for a segment of so many bytes.
	fits func(bytes, older int64) bool
}

// pick returns the oldest run of segments that is to be merged now, or nil. all are in the order of their epochs.
//
// A run is of neighbours of one day, none of which was merged before. It is merged when it has as many segments as a merge should have, or
// when it has two and will not have more: because its day is over, or the next segment is no part of it.
func (r *rules) pick(all []*handle) []*handle {
	older := int64(0)
	for i, h := range all {
		run, done := r.run(all[i:])
		if enough := len(run) >= r.least || done && len(run) >= 2; enough && r.fits(sizeOf(run), older) {
			return run
		}
		older += h.info.Size
	}
	return nil
}

// run returns the longest run that begins with the first of some segments, and whether it will never be longer.
func (r *rules) run(list []*handle) (run []*handle, done bool) {
	var sum total
	for i, h := range list {
		if r.waits(h) || i > 0 && r.gap(list[i-1], h) {
			return list[:i], false
		}
		sum.add(h)
		if i == r.most || !mergeable(h) || h.name.Day != list[0].name.Day || i > 0 && h.name.First <= list[i-1].name.Last || r.exceeds(&sum) {
			return list[:i], true
		}
	}
	return list, list[0].name.Day < r.over
}

// mergeable reports whether a segment was never merged, and nothing speaks against it.
func mergeable(h *handle) bool { return h.name.Single() && !h.spoiled }

// waits reports whether the log of a segment is still there.
func (r *rules) waits(h *handle) bool { return slices.ContainsFunc(r.unflushed, h.name.Holds) }

// gap reports whether a segment is still to come between two.
func (r *rules) gap(a, b *handle) bool {
	return slices.ContainsFunc(r.unflushed, func(epoch uint64) bool { return a.name.Last < epoch && epoch < b.name.First })
}

// total is what some segments have together.
type total struct {
	rows, traces int
	bytes        int64
	first, last  time.Time // arrivals
}

func (t *total) add(h *handle) {
	t.rows += h.info.Rows
	t.traces += h.info.Traces
	t.bytes += h.info.Size
	first := h.info.FirstArrival
	if first.IsZero() {
		first = h.info.LastArrival
	}
	if t.first.IsZero() || first.Before(t.first) {
		t.first = first
	}
	if h.info.LastArrival.After(t.last) {
		t.last = h.info.LastArrival
	}
}

func (r *rules) exceeds(t *total) bool {
	return t.rows > r.rows || t.traces > r.traces || r.bytes > 0 && t.bytes > r.bytes || r.arrivals > 0 && t.last.Sub(t.first) > r.arrivals
}

func totalOf(list []*handle) (t total) {
	for _, h := range list {
		t.add(h)
	}
	return t
}

func sizeOf(list []*handle) int64 {
	t := totalOf(list)
	return t.bytes
}

// singles counts the segments of one memtable, merged ones apart.
func singles(all []*handle) (n int) {
	for _, h := range all {
		if h.name.Single() {
			n++
		}
	}
	return n
}

// backlog counts the segments that may still be merged.
func backlog(all []*handle) (n int) {
	for _, h := range all {
		if mergeable(h) {
			n++
		}
	}
	return n
}
