package disk

import (
	"slices"
	"time"

	"go.uber.org/zap"
)

// Values of the label reason of expired spans.
const (
	expiredByTime = "retention_time"
	expiredBySize = "retention_size"
	expiredByFull = "disk_full"
	expiredEmpty  = "empty"
)

// expire deletes segments older than the retention time, and the oldest ones while the folder is
// too large.
func (e *exporter) expire() {
	now := e.env.Now()
	if e.clock.jumped(now) {
		e.seeAgain(now)
		e.log.Warn("system clock jumped; deleting spans by age is suspended", zap.Time("now", now), zap.Duration("hold", jumpHold))
	}
	retention := time.Duration(e.config.Retention.Time)
	byTime := retention > 0 && !e.clock.holds()
	arrivals := e.arrivals(now)
	for _, h := range e.expirable() {
		switch arrived, ok := arrivals[h]; {
		case byTime && ok && arrived.Before(now.Add(-retention)):
			e.drop(h, expiredByTime)
		case h.info.Rows == 0: // all its spans were deleted
			e.drop(h, expiredEmpty)
		}
	}
	e.measure()
	if limit := int64(e.config.Retention.Size); limit > 0 {
		for _, h := range e.expirable() {
			if e.used() <= limit {
				break
			}
			e.drop(h, expiredBySize)
		}
	}
	if err := e.dir.RemoveEmptyDays(); err != nil {
		e.log.Warn("cannot remove empty folders", zap.Error(err))
	}
}

// futureLimit is how far in the future the last arrival of a segment may be without doubt about the
// clock at that time.
const futureLimit = time.Hour

// arrivals returns the time of the last arrival in each segment. If that is in the future, because
// the clock was wrong, it is replaced with an estimate, so that the segment expires: epochs have
// the order of arrival, so it arrived before the first later segment with a plausible time, and not
// before any earlier one. Without such a later segment, it is the time at which this process first
// saw the segment.
func (e *exporter) arrivals(now time.Time) map[*handle]time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := e.segments
	all := make(map[*handle]time.Time, len(list))
	plausible := func(h *handle) bool { return !h.info.LastArrival.After(now.Add(futureLimit)) }
	var earlier time.Time
	for _, h := range list {
		if plausible(h) && h.info.LastArrival.After(earlier) {
			earlier = h.info.LastArrival
		}
		all[h] = earlier
	}
	var later time.Time
	for _, h := range slices.Backward(list) {
		switch {
		case plausible(h):
			all[h], later = h.info.LastArrival, h.info.LastArrival
		case !later.IsZero() && later.After(all[h]):
			all[h] = later
		case later.IsZero():
			all[h] = h.seen
		}
	}
	return all
}

// seeAgain restarts the time for which segments with an arrival in the future have been known,
// because it was taken from a clock that was wrong.
func (e *exporter) seeAgain(now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range e.segments {
		h.seen = now
	}
}

// expirable returns the segments that may be deleted, in the order in which they were begun,
// regardless of clock changes.
func (e *exporter) expirable() []*handle {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(e.segments), e.pinned)
}

// drop removes a segment from the store and returns its size, or 0 if it must not be removed now.
// Its file is deleted when the last query that reads it has ended. A merge that reads it is
// aborted.
func (e *exporter) drop(h *handle, reason string) int64 {
	e.mu.Lock()
	at := slices.Index(e.segments, h)
	if at < 0 || e.pinned(h) {
		e.mu.Unlock()
		return 0
	}
	e.segments = slices.Delete(slices.Clone(e.segments), at, at+1)
	e.doom(h)
	if m := e.merging; m != nil && slices.Contains(m.inputs, h) {
		m.inputExpired = true
	}
	e.mu.Unlock()
	e.metrics.expired.WithLabelValues(reason).Add(float64(h.info.Rows))
	e.log.Info("deleted segment", zap.Stringer("segment", h.name), zap.Int("spans", h.info.Rows), zap.Int64("bytes", h.info.Size),
		zap.Time("last_arrival", h.info.LastArrival), zap.String("reason", reason))
	e.releaseHandle(h)
	return h.info.Size
}

// measure records the size of logs and reserve.
func (e *exporter) measure() {
	n, err := e.logs.Size()
	if err != nil {
		e.log.Warn("cannot measure write-ahead log size", zap.Error(err))
		return
	}
	e.metrics.logBytes.Set(float64(n))
	if e.reserved.Load() {
		n += int64(e.config.Reserve)
	}
	e.mu.Lock()
	e.fixed = n
	e.mu.Unlock()
}

// used returns the size of the folder: segments, the output of a merge, logs and reserve as last
// measured. The quarantine does not count.
func (e *exporter) used() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := e.fixed + e.claimed
	for _, h := range e.segments {
		n += h.info.Size
	}
	return n
}
