package disk

import (
	"errors"
	"slices"
	"sync"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// segments are the open segments of the store, and the files that it has yet to delete.
type segments struct {
	*common
	cache   *segment.Cache
	damaged damagedFiles

	mu       sync.Mutex // see the order of locks in doc.go
	list     []*handle  // by first epoch; the slice is replaced, never modified in place
	doomed   []*handle  // no longer part of the store, but queries read them or their files could not be deleted
	leftover []oldLog   // logs still to be removed; changed by the maintenance loop only
}

// all returns the current segments, by first epoch.
func (s *segments) all() []*handle {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list
}

// open opens a segment for the store.
func (s *segments) open(name directory.Segment) (*handle, error) {
	file, err := segment.OpenCached(s.dir.FS(), s.dir.Path(name), s.cache)
	if err != nil {
		return nil, err
	}
	if d := (*source.DamageError)(nil); errors.As(file.VerifyHeader(), &d) {
		s.noteDamage(d)
	}
	if file.Trailing() > 0 {
		s.trim(file)
	}
	name.Size = file.Info().Size
	return &handle{name: name, info: file.Info(), segment: file, refs: 1, seen: s.env.Now()}, nil
}

// trim removes other data after a segment in its file. If that fails, the segment is used
// nevertheless.
func (s *segments) trim(file *segment.Segment) {
	n := file.Trailing()
	if err := file.Trim(s.env.FS); err != nil {
		s.log.Error("segment is followed by other data that cannot be removed; no spans are lost", zap.String("file", file.Name()),
			zap.Int64("bytes", n), zap.Error(err))
		return
	}
	s.metrics.restored.Inc()
	s.log.Warn("segment was followed by other data; removed it from the file; no spans are lost", zap.String("file", file.Name()),
		zap.Int64("bytes", n))
}

// add adds the segment of a flushed memtable, or nil if it had no spans, and its log.
func (s *segments) add(h *handle, log oldLog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h != nil {
		s.list = insert(s.list, h)
	}
	s.leftover = append(s.leftover, log)
}

// pinned reports whether a segment must not expire now, because some of its spans would come back
// at the next start from another file: a log, an input that it was merged from, or the output that
// is about to replace it. The caller holds mu.
func (s *segments) pinned(h *handle) bool {
	return slices.ContainsFunc(s.leftover, func(l oldLog) bool { return h.name.InRange(l.epoch) }) ||
		h.merge != nil && h.merge.committing ||
		slices.ContainsFunc(s.doomed, func(d *handle) bool { return h.replaces(d) || d.replaces(h) })
}

// doom marks a segment for deletion. The caller has taken it out of the list, holds mu, and
// releases the handle afterwards.
func (s *segments) doom(h *handle) {
	h.expired = true
	s.doomed = append(s.doomed, h)
}

// doomedBytes returns the size of all files that are no longer part of the store but still exist.
// The caller holds mu.
func (s *segments) doomedBytes() int64 {
	n := int64(0)
	for _, h := range s.doomed {
		n += h.info.Size
	}
	return n
}

func (s *segments) release(h *handle) {
	s.mu.Lock()
	h.refs--
	last, expired := h.refs == 0, h.expired
	h.removing = last && expired
	s.mu.Unlock()
	if !last {
		return
	}
	if err := h.segment.Close(); err != nil {
		s.log.Warn("cannot close segment", zap.Error(err))
	}
	if expired {
		s.removeFile(h)
	}
}

// removeFile deletes the file of a doomed segment that no query reads. The caller has set removing,
// so that no other goroutine deletes it: a new file of the same name may be created as soon as this
// one is gone.
func (s *segments) removeFile(h *handle) {
	err := s.dir.Remove(h.name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && !h.reported {
		s.log.Error("cannot delete segment; will retry", zap.Error(err))
		h.reported = true
	}
	h.removing = false
	if err == nil {
		s.doomed = slices.DeleteFunc(slices.Clone(s.doomed), func(o *handle) bool { return o == h })
	}
}

// retryRemovals deletes files that could not be deleted before.
func (s *segments) retryRemovals() {
	s.mu.Lock()
	var left []*handle
	for _, h := range s.doomed {
		if h.refs == 0 && !h.removing {
			h.removing = true
			left = append(left, h)
		}
	}
	s.mu.Unlock()
	for _, h := range left {
		s.removeFile(h)
	}
}

// dropReplaced removes segments whose spans are also in a merged segment, because a crash came
// before they were deleted. Segments in the same range of epochs that the merged segment does not
// name stay, for example one that was in the quarantine at the time and was repaired later.
func (s *segments) dropReplaced() {
	level := map[string]int{} // by name: the highest level of a segment merged from it
	for _, h := range s.list {
		for _, name := range h.info.Replaces {
			level[name] = max(level[name], h.name.Level)
		}
	}
	var gone []*handle
	s.mu.Lock()
	s.list = slices.DeleteFunc(s.list, func(h *handle) bool {
		if level[h.name.String()] <= h.name.Level {
			return false
		}
		s.doom(h)
		gone = append(gone, h)
		return true
	})
	s.mu.Unlock()
	for _, h := range gone {
		s.release(h)
	}
}

// acquire reports whether a segment is still part of the store. If so, this process does not delete
// its file until the caller releases the segment.
func (s *segments) acquire(h *handle) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.list, h) {
		return false
	}
	h.refs++
	return true
}

// reopen replaces a segment with its restored file. A merge that reads the segment is aborted. If
// the merge is about to replace the segment, the segment stays.
func (s *segments) reopen(h *handle) {
	unused, err := s.open(h.name)
	if err != nil {
		s.log.Error("cannot open restored segment file; the deleted file stays open and needs disk space until the process ends",
			zap.String("file", s.dir.Path(h.name)), zap.Error(err))
		return
	}
	s.mu.Lock()
	at, m := slices.Index(s.list, h), h.merge
	if at >= 0 && (m == nil || !m.committing) {
		unused.seen, unused.unmergeable = h.seen, h.unmergeable
		s.list = slices.Clone(s.list)
		s.list[at], unused = unused, h
		if m != nil {
			m.inputExpired = true
		}
	}
	s.mu.Unlock()
	s.release(unused)
}

// expirable returns the segments that may be deleted, in the order in which they were started,
// regardless of clock changes.
func (s *segments) expirable() []*handle {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.list), s.pinned)
}

// drop removes a segment from the store and returns its size, or 0 if it must not be removed now.
// Its file is deleted when the last query that reads it has ended. A merge that reads it is
// aborted.
func (s *segments) drop(h *handle, reason string) int64 {
	s.mu.Lock()
	at := slices.Index(s.list, h)
	if at < 0 || s.pinned(h) {
		s.mu.Unlock()
		return 0
	}
	s.list = slices.Delete(slices.Clone(s.list), at, at+1)
	s.doom(h)
	if h.merge != nil {
		h.merge.inputExpired = true
	}
	s.mu.Unlock()
	s.metrics.expired.WithLabelValues(reason).Add(float64(h.info.Rows))
	s.log.Info("deleted segment", zap.Stringer("segment", h.name), zap.Int("spans", h.info.Rows), zap.Int64("bytes", h.info.Size),
		zap.Time("last_arrival", h.info.LastArrival), zap.String("reason", reason))
	s.release(h)
	return h.info.Size
}

// replacedBy names all files that a segment merged from the inputs replaces and that may still
// exist, or reappear after a power failure: the inputs, and the files that they were merged from.
// Files of level 0 are always named, because they tell the store that a log is no longer needed;
// files of other levels are named as long as they exist. The caller holds mu.
func (s *segments) replacedBy(inputs []*handle) []string {
	var names []string
	for _, h := range inputs {
		names = append(names, h.name.String())
		for _, text := range h.info.Replaces {
			name, ok := directory.ParseSegment(text)
			if ok && name.Level == 0 || slices.ContainsFunc(s.doomed, func(d *handle) bool { return d.name.String() == text }) {
				names = append(names, text)
			}
		}
	}
	return names
}

// withdraw deletes an output that may already have its final name. While the file exists, no input
// expires.
func (s *segments) withdraw(m *merge) {
	d := &handle{name: m.name, info: segment.Info{Meta: m.meta}, expired: true, removing: true}
	s.mu.Lock()
	s.doomed = append(s.doomed, d)
	s.mu.Unlock()
	s.removeFile(d)
}

// withdrawn reports whether the output of a failed merge of some of these inputs is still to be
// deleted. Another output would not name it, and after a crash both would exist. The caller holds
// mu.
func (s *segments) withdrawn(inputs []*handle) bool {
	return slices.ContainsFunc(s.doomed, func(d *handle) bool { return slices.ContainsFunc(inputs, d.replaces) })
}

// oldLog is a log whose spans are in a segment. The segment must not expire before the log is
// removed: the next start would bring the spans back.
type oldLog struct {
	epoch        uint64
	damaged, bad bool // damaged: move to quarantine; bad: delete; neither: reuse the file
}

// removeLogs removes the logs of flushed memtables.
func (s *segments) removeLogs() {
	s.mu.Lock()
	logs := slices.Clone(s.leftover)
	s.mu.Unlock()
	logs = slices.DeleteFunc(logs, func(l oldLog) bool {
		var err error
		switch {
		case l.damaged:
			err = s.logs.Quarantine(l.epoch, s.dir.QuarantineDir())
		case l.bad:
			err = s.logs.Remove(l.epoch)
		default:
			err = s.logs.Recycle(l.epoch)
		}
		if err != nil {
			s.log.Warn("cannot remove write-ahead log of flushed spans; will retry", zap.Error(err))
		}
		return err == nil
	})
	s.mu.Lock()
	s.leftover = logs
	s.mu.Unlock()
}
