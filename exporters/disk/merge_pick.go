package disk

import (
	"slices"
	"time"
)

// mergeRules holds the current rules for choosing segments to merge.
type mergeRules struct {
	minSegments, maxSegments int           // in one merge
	rows, traces             int           // maximum in the output
	bytes                    int64         // maximum of the inputs together; 0: unlimited
	nameBytes                int64         // maximum of the names of the inputs together
	arrivals                 time.Duration // maximum between first and last arrival; 0: unlimited
	today                    string        // no segment is added to a day before this one
	unflushed                []uint64      // epochs without a segment yet, or whose logs still exist

	// fits reports whether a segment of the given size fits on the disk, possibly after older
	// segments of the given total size have expired.
	fits func(bytes, older int64) bool
}

// pick returns the oldest run of segments that is due for a merge, or nil. all is ordered by epoch.
//
// A run consists of unmerged neighbors of one day. It is due when it has
// the minimum number of segments, or when it has two and cannot grow: because its day is over, or
// because the next segment cannot be part of it.
func (r *mergeRules) pick(all []*handle) []*handle {
	older := int64(0)
	for i, h := range all {
		run, done := r.run(all[i:])
		if enough := len(run) >= r.minSegments || done && len(run) >= 2; enough && r.fits(sizeOf(run), older) {
			return run
		}
		older += h.info.Size
	}
	return nil
}

// run returns the longest run at the start of list, and whether it can no longer grow.
func (r *mergeRules) run(list []*handle) (run []*handle, done bool) {
	var sum total
	for i, h := range list {
		if r.hasLog(h) || i > 0 && r.gap(list[i-1], h) {
			return list[:i], false
		}
		sum.add(h)
		if i == r.maxSegments || !mergeable(h) || h.name.Day != list[0].name.Day ||
			i > 0 && h.name.First <= list[i-1].name.Last || r.exceeds(&sum) {
			return list[:i], true
		}
	}
	return list, list[0].name.Day < r.today
}

// mergeable reports whether a segment was never merged and is not excluded.
func mergeable(h *handle) bool { return h.name.IsSingleEpoch() && !h.unmergeable }

// hasLog reports whether the log of a segment still exists.
func (r *mergeRules) hasLog(h *handle) bool { return slices.ContainsFunc(r.unflushed, h.name.InRange) }

// gap reports whether a segment between a and b is still to be flushed.
func (r *mergeRules) gap(a, b *handle) bool {
	return slices.ContainsFunc(r.unflushed, func(epoch uint64) bool { return a.name.Last < epoch && epoch < b.name.First })
}

// total sums up segments.
type total struct {
	rows, traces int
	bytes        int64
	nameBytes    int64
	first, last  time.Time // arrivals
}

func (t *total) add(h *handle) {
	t.rows += h.info.Rows
	t.traces += h.info.Traces
	t.bytes += h.info.Size
	t.nameBytes += h.info.NameBytes
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

func (r *mergeRules) exceeds(t *total) bool {
	return t.rows > r.rows || t.traces > r.traces || t.nameBytes > r.nameBytes ||
		r.bytes > 0 && t.bytes > r.bytes || r.arrivals > 0 && t.last.Sub(t.first) > r.arrivals
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

// singles counts the segments that were flushed from one memtable.
func singles(all []*handle) (n int) {
	for _, h := range all {
		if h.name.IsSingleEpoch() {
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
