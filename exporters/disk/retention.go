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
	expiredEmpty  = "empty"
)

// expire deletes segments that are too old, and the oldest ones while the folder is too large.
func (e *exporter) expire() {
	now := e.env.Now()
	if e.jump.jumped(now) {
		e.log.Warn("the clock jumped: nothing expires by time for a while", zap.Time("now", now), zap.Duration("hold", jumpHold))
	}
	keep := time.Duration(e.config.Retention.Time)
	byTime := keep > 0 && !e.jump.holds()
	for _, h := range e.loose() {
		switch {
		case byTime && h.info.LastArrival.Before(now.Add(-keep)):
			e.drop(h, expiredByTime)
		case h.info.Rows == 0: // all its spans were deleted
			e.drop(h, expiredEmpty)
		}
	}
	e.measure()
	if limit := int64(e.config.Retention.Size); limit > 0 {
		for _, h := range e.loose() {
			if e.used() <= limit {
				break
			}
			e.drop(h, expiredBySize)
		}
	}
	if err := e.dir.RemoveEmptyDays(); err != nil {
		e.log.Warn("tidying up", zap.Error(err))
	}
}

// loose returns the segments that may go, in the order in which they were begun, whatever the clock said then.
func (e *exporter) loose() []*handle {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(e.segments), e.bound)
}

// drop takes a segment out of the store and returns its size, or 0 if it may not go at this moment. Its file goes when the last query that
// reads it has ended. A merge that reads it comes to nothing.
func (e *exporter) drop(h *handle, reason string) int64 {
	e.mu.Lock()
	at := slices.Index(e.segments, h)
	if at < 0 || e.bound(h) {
		e.mu.Unlock()
		return 0
	}
	e.segments = slices.Delete(slices.Clone(e.segments), at, at+1)
	e.doom(h)
	if m := e.merging; m != nil && slices.Contains(m.inputs, h) {
		m.lost = true
	}
	e.mu.Unlock()
	e.metrics.expired.WithLabelValues(reason).Add(float64(h.info.Rows))
	e.log.Info("segment deleted", zap.Stringer("segment", h.name), zap.Int("spans", h.info.Rows), zap.Int64("bytes", h.info.Size),
		zap.Time("last_arrival", h.info.LastArrival), zap.String("reason", reason))
	e.releaseHandle(h)
	return h.info.Size
}

// measure looks how large logs and reserve are.
func (e *exporter) measure() {
	n, err := e.logs.Size()
	if err != nil {
		e.log.Warn("measuring the log", zap.Error(err))
		return
	}
	e.metrics.logBytes.Set(float64(n))
	if e.reserved {
		n += int64(e.config.Reserve)
	}
	e.mu.Lock()
	e.fixed = n
	e.mu.Unlock()
}

// used returns the size of the folder: segments, one that merging makes, logs and reserve as last measured. What is in the quarantine is not
// the store's any more.
func (e *exporter) used() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := e.fixed + e.claimed
	for _, h := range e.segments {
		n += h.info.Size
	}
	return n
}
