package disk

import (
	"cmp"
	"slices"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
)

// handle is an open segment. Its file goes when the store has given it up and nobody reads it any more.
type handle struct {
	name    directory.Segment
	info    segment.Info
	segment *segment.Segment // nil: a file that was never taken into the store

	// Guarded by exporter.mu.
	hiding  hiding
	refs    int  // the store's and those of views
	expired bool // delete the file at the end; it is among exporter.doomed
	burying bool // somebody is deleting the file
	told    bool // that deleting it failed
	spoiled bool // it cannot be merged: part of it is damaged, or what it has is too much for one segment
}

// open opens a segment for the store.
func (e *exporter) open(name directory.Segment) (*handle, error) {
	s, err := segment.OpenCached(e.env.FS, e.dir.Path(name), e.cache)
	if err != nil {
		return nil, err
	}
	name.Size = s.Info().Size
	return &handle{name: name, info: s.Info(), segment: s, refs: 1}, nil
}

// replaces reports whether the segment was made of another one, among others.
func (h *handle) replaces(o *handle) bool {
	return h.name.Level > o.name.Level && slices.Contains(h.info.Replaces, o.name.String())
}

// has reports whether the spans of a log are in the segment.
func (h *handle) has(epoch uint64) bool {
	if h.name.Single() {
		return h.name.First == epoch
	}
	return h.name.Holds(epoch) && slices.ContainsFunc(h.info.Replaces, func(text string) bool {
		name, ok := directory.Parse(text)
		return ok && name.Single() && name.First == epoch
	})
}

func byEpoch(a, b *handle) int { return cmp.Compare(a.name.First, b.name.First) }

// insert returns a new list of segments with h in its place.
func insert(segments []*handle, h *handle) []*handle {
	at, _ := slices.BinarySearchFunc(segments, h, byEpoch)
	return slices.Insert(slices.Clone(segments), at, h)
}

// bound reports whether a segment must not expire now, because spans of it that are still somewhere else would be back at the next start: in
// a log, in a file of which it was made, or in the file that is just about to replace it. The caller holds mu.
func (e *exporter) bound(h *handle) bool {
	return slices.ContainsFunc(e.leftover, func(l oldLog) bool { return h.name.Holds(l.epoch) }) ||
		e.merging != nil && e.merging.committing && slices.Contains(e.merging.inputs, h) ||
		slices.ContainsFunc(e.doomed, func(d *handle) bool { return h.replaces(d) || d.replaces(h) })
}

// doom gives a segment up, which the caller takes out of the store, and releases its hold. The caller holds mu.
func (e *exporter) doom(h *handle) {
	h.expired = true
	e.doomed = append(e.doomed, h)
}

// condemned returns the size of all files that the store has given up and that are still there. The caller holds mu.
func (e *exporter) condemned() int64 {
	n := int64(0)
	for _, h := range e.doomed {
		n += h.info.Size
	}
	return n
}

func (e *exporter) releaseHandle(h *handle) {
	e.mu.Lock()
	h.refs--
	last, expired := h.refs == 0, h.expired
	h.burying = last && expired
	e.mu.Unlock()
	if !last {
		return
	}
	if err := h.segment.Close(); err != nil {
		e.log.Warn("closing a segment", zap.Error(err))
	}
	if expired {
		e.bury(h)
	}
}

// bury deletes the file of a doomed segment that nobody reads. The caller has set burying, so that nobody else does: a file of the same name
// may be made as soon as this one is gone.
func (e *exporter) bury(h *handle) {
	err := e.dir.Remove(h.name)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil && !h.told {
		e.log.Error("deleting a segment; it will be tried again and again", zap.Error(err))
		h.told = true
	}
	h.burying = false
	if err == nil {
		e.doomed = slices.DeleteFunc(slices.Clone(e.doomed), func(o *handle) bool { return o == h })
	}
}

// buryLeft tries again to delete files that could not be deleted.
func (e *exporter) buryLeft() {
	e.mu.Lock()
	var left []*handle
	for _, h := range e.doomed {
		if h.refs == 0 && !h.burying {
			h.burying = true
			left = append(left, h)
		}
	}
	e.mu.Unlock()
	for _, h := range left {
		e.bury(h)
	}
}
