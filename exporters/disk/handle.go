package disk

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// handle is an open segment. Its file is deleted when the store has dropped the segment and no
// query reads it.
type handle struct {
	name    directory.Segment
	info    segment.Info
	segment *segment.Segment // nil: a file that never became part of the store

	// Guarded by exporter.mu.
	seen        time.Time // when this process opened the file, or noticed that its clock had been wrong
	deletion    filterState
	refs        int  // held by the store and by views
	expired     bool // delete the file after the last release; it is in exporter.doomed
	removing    bool // the file is being deleted
	reported    bool // a failed deletion was logged
	unmergeable bool // damaged, or its contents exceed the limits of one segment
}

// open opens a segment for the store.
func (e *exporter) open(name directory.Segment) (*handle, error) {
	s, err := segment.OpenCached(e.dir.FS(), e.dir.Path(name), e.cache)
	if err != nil {
		return nil, err
	}
	if d := (*source.DamageError)(nil); errors.As(s.VerifyHeader(), &d) {
		e.damaged(d)
	}
	if s.Trailing() > 0 {
		e.trim(s)
	}
	name.Size = s.Info().Size
	return &handle{name: name, info: s.Info(), segment: s, refs: 1, seen: e.env.Now()}, nil
}

// trim removes other data that follows a segment in its file. If that fails, the segment is used
// nevertheless.
func (e *exporter) trim(s *segment.Segment) {
	n := s.Trailing()
	if err := s.Trim(e.env.FS); err != nil {
		e.log.Error("segment is followed by other data that cannot be removed; no spans are lost", zap.String("file", s.Name()),
			zap.Int64("bytes", n), zap.Error(err))
		return
	}
	e.metrics.restored.Inc()
	e.log.Warn("segment was followed by other data; removed it from the file; no spans are lost", zap.String("file", s.Name()),
		zap.Int64("bytes", n))
}

// replaces reports whether o is one of the segments that h was merged from.
func (h *handle) replaces(o *handle) bool {
	return h.name.Level > o.name.Level && slices.Contains(h.info.Replaces, o.name.String())
}

// has reports whether the spans of a log are in the segment.
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

// pinned reports whether a segment must not expire now, because spans of it would come back at the
// next start from another file: a log, an input it was merged from, or the output that is about to
// replace it. The caller holds mu.
func (e *exporter) pinned(h *handle) bool {
	return slices.ContainsFunc(e.leftover, func(l oldLog) bool { return h.name.InRange(l.epoch) }) ||
		e.merging != nil && e.merging.committing && slices.Contains(e.merging.inputs, h) ||
		slices.ContainsFunc(e.doomed, func(d *handle) bool { return h.replaces(d) || d.replaces(h) })
}

// doom marks a segment for deletion. The caller has taken it out of the list, holds mu, and
// releases the handle afterwards.
func (e *exporter) doom(h *handle) {
	h.expired = true
	e.doomed = append(e.doomed, h)
}

// doomedBytes returns the size of all files that are no longer part of the store but still exist.
// The caller holds mu.
func (e *exporter) doomedBytes() int64 {
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
	h.removing = last && expired
	e.mu.Unlock()
	if !last {
		return
	}
	if err := h.segment.Close(); err != nil {
		e.log.Warn("cannot close segment", zap.Error(err))
	}
	if expired {
		e.removeFile(h)
	}
}

// removeFile deletes the file of a doomed segment that no query reads. The caller has set removing,
// so that no other goroutine deletes it: a new file of the same name may be created as soon as this
// one is gone.
func (e *exporter) removeFile(h *handle) {
	err := e.dir.Remove(h.name)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil && !h.reported {
		e.log.Error("cannot delete segment; will retry", zap.Error(err))
		h.reported = true
	}
	h.removing = false
	if err == nil {
		e.doomed = slices.DeleteFunc(slices.Clone(e.doomed), func(o *handle) bool { return o == h })
	}
}

// retryRemovals deletes files that could not be deleted before.
func (e *exporter) retryRemovals() {
	e.mu.Lock()
	var left []*handle
	for _, h := range e.doomed {
		if h.refs == 0 && !h.removing {
			h.removing = true
			left = append(left, h)
		}
	}
	e.mu.Unlock()
	for _, h := range left {
		e.removeFile(h)
	}
}
