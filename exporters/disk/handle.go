package disk

import (
	"cmp"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
)

// handle is an open segment. Its file is deleted when the store has dropped the segment and no
// query reads it.
type handle struct {
	name    directory.Segment
	info    segment.Info
	segment *segment.Segment // nil: a file that never became part of the store

	// Guarded by segments.mu.
	seen        time.Time // when this process opened the file, or noticed that its clock had been wrong
	refs        int       // held by the store and by views
	merge       *merge    // the merge that reads it; nil: none
	expired     bool      // delete the file after the last release; it is in segments.doomed
	removing    bool      // the file is being deleted
	reported    bool      // a failed deletion was logged
	unmergeable bool      // damaged, or its contents exceed the limits of one segment

	deletion filterState // guarded by deletions.mu
}

// replaces reports whether o is one of the segments that h was merged from.
func (h *handle) replaces(o *handle) bool {
	return h.name.Level > o.name.Level && slices.Contains(h.info.Replaces, o.name.String())
}

// has reports whether the segment contains the spans of a log.
func (h *handle) has(epoch uint64) bool {
	if h.name.IsSingleEpoch() {
		return h.name.First == epoch
	}
	return h.name.InRange(epoch) && slices.ContainsFunc(h.info.Replaces, func(text string) bool {
		name, ok := directory.ParseSegment(text)
		return ok && name.IsSingleEpoch() && name.First == epoch
	})
}

func byEpoch(a, b *handle) int { return cmp.Compare(a.name.First, b.name.First) }

// insert returns a new list of segments with h in its place.
func insert(segments []*handle, h *handle) []*handle {
	at, _ := slices.BinarySearchFunc(segments, h, byEpoch)
	return slices.Insert(slices.Clone(segments), at, h)
}
