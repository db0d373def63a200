package disk

import (
	"slices"
	"time"

	"go.uber.org/zap"
)

// Reasons of expiry, as the metric names them.
const (
	expiredByTime = "retention_time"
	expiredBySize = "retention_size"
	expiredByFull = "disk_full"
)

// expire deletes segments that are too old, and the oldest ones while the folder is too large.
func (e *exporter) expire() {
	now := e.env.Now()
	if e.jump.jumped(now) {
		e.log.Warn("the clock jumped: nothing expires by time for a while", zap.Time("now", now), zap.Duration("hold", jumpHold))
	}
	if keep := time.Duration(e.config.Retention.Time); keep > 0 && !e.jump.holds() {
		limit := now.Add(-keep)
		for _, h := range e.handles() {
			if h.info.LastArrival.Before(limit) && !e.bound(h) {
				e.drop(h, expiredByTime)
			}
		}
	}
	if limit := int64(e.config.Retention.Size); limit > 0 {
		for h := e.oldest(); h != nil && e.used() > limit; h = e.oldest() {
			e.drop(h, expiredBySize)
		}
	}
	if err := e.dir.RemoveEmptyDays(); err != nil {
		e.log.Warn("tidying up", zap.Error(err))
	}
}

func (e *exporter) handles() []*handle {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.segments)
}

// oldest returns the segment that was made first, whatever the clock said then, of those that may go; or nil.
func (e *exporter) oldest() *handle {
	free := slices.DeleteFunc(e.handles(), e.bound)
	if len(free) == 0 {
		return nil
	}
	return slices.MinFunc(free, func(a, b *handle) int { return cmpEpoch(a.name, b.name) })
}

// drop takes a segment out of the store. Its file goes when the last query that reads it has ended.
func (e *exporter) drop(h *handle, reason string) {
	e.mu.Lock()
	e.segments = slices.DeleteFunc(slices.Clone(e.segments), func(o *handle) bool { return o == h })
	h.expired = true
	e.condemned += h.info.Size
	e.mu.Unlock()
	e.metrics.expired.WithLabelValues(reason).Add(float64(h.info.Rows))
	e.log.Info("segment deleted", zap.Stringer("segment", h.name), zap.Int("spans", h.info.Rows), zap.Int64("bytes", h.info.Size),
		zap.Time("last_arrival", h.info.LastArrival), zap.String("reason", reason))
	e.releaseHandle(h)
}

// used returns the size of the folder: segments, log and reserve. What is in the quarantine is not the store's any more.
func (e *exporter) used() int64 {
	n, err := e.logs.Size()
	if err != nil {
		e.log.Warn("measuring the log", zap.Error(err))
	}
	if e.reserved {
		n += int64(e.config.Reserve)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, h := range e.segments {
		n += h.info.Size
	}
	return n
}
