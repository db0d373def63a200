package disk

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// retention deletes segments that are too old. It also deletes the oldest segments if the store
// exceeds its size limit, or if the disk is full and disk_full is drop_oldest. It tracks the space
// that the store uses and needs.
type retention struct {
	*common
	intake   *intake
	segments *segments

	// Used by the maintenance loop, and by Start while it does not run.
	clock clockGuard // suspends expiry by time
	free  int64      // free space of the disk in bytes at the last check

	reserved atomic.Bool // the reserve exists

	mu        sync.Mutex // see the order of locks in doc.go
	claimed   int64      // bytes reserved for the output of the running or the next merge
	awaited   bool       // no merge is running: the next one waits for the claimed bytes
	restoring int64      // size of the segment whose deleted file is being rewritten
	fixed     int64      // bytes of logs and reserve at the last measurement
}

// Values of the reason label of expired spans.
const (
	expiredByTime = "retention_time"
	expiredBySize = "retention_size"
	expiredByFull = "disk_full"
	expiredEmpty  = "empty"
)

// expire deletes segments older than the retention time, and the oldest ones while the folder is
// too large.
func (r *retention) expire() {
	now := r.env.Now()
	if r.clock.jumped(now) {
		r.seeAgain(now)
		r.log.Warn("system clock jumped; deleting spans by age is suspended", zap.Time("now", now), zap.Duration("hold", jumpHold))
	}
	retention := time.Duration(r.config.Retention.Time)
	byTime := retention > 0 && !r.clock.holds()
	arrivals := r.arrivals(now)
	for _, h := range r.segments.expirable() {
		switch arrived, ok := arrivals[h]; {
		case byTime && ok && arrived.Before(now.Add(-retention)):
			r.segments.drop(h, expiredByTime)
		case h.info.Rows == 0: // all its spans were deleted
			r.segments.drop(h, expiredEmpty)
		}
	}
	r.measure()
	if limit := int64(r.config.Retention.Size); limit > 0 {
		for _, h := range r.segments.expirable() {
			if r.used() <= limit {
				break
			}
			r.segments.drop(h, expiredBySize)
		}
	}
	if err := r.dir.RemoveEmptyDays(); err != nil {
		r.log.Warn("cannot remove empty folders", zap.Error(err))
	}
}

// futureLimit is how far in the future the last arrival of a segment may be before the clock at
// that time is considered wrong.
const futureLimit = time.Hour

// arrivals returns the time of the last arrival in each segment. If that is in the future, because
// the clock was wrong, it is replaced with an estimate so that the segment expires. Epochs are in
// order of arrival, so the segment arrived before the first later segment with a plausible time,
// and not before any earlier one. Without such a later segment, the estimate is when this process
// first saw the segment.
func (r *retention) arrivals(now time.Time) map[*handle]time.Time {
	r.segments.mu.Lock()
	defer r.segments.mu.Unlock()
	list := r.segments.list
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

// seeAgain sets the time at which segments with an arrival in the future were first seen to now,
// because the recorded time came from a wrong clock.
func (r *retention) seeAgain(now time.Time) {
	r.segments.mu.Lock()
	defer r.segments.mu.Unlock()
	for _, h := range r.segments.list {
		h.seen = now
	}
}

// measure records the size of logs and reserve.
func (r *retention) measure() {
	n, err := r.logs.Size()
	if err != nil {
		r.log.Warn("cannot measure write-ahead log size", zap.Error(err))
		return
	}
	r.metrics.logBytes.Set(float64(n))
	if r.reserved.Load() {
		n += int64(r.config.Reserve)
	}
	r.mu.Lock()
	r.fixed = n
	r.mu.Unlock()
}

// overhead returns the size of logs and reserve as last measured.
func (r *retention) overhead() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fixed
}

// used returns the size of the folder: segments, the output of a merge, logs and reserve as last
// measured. The quarantine does not count.
func (r *retention) used() int64 {
	r.segments.mu.Lock() // a merge that ends replaces segments and gives up its claim in one step
	defer r.segments.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fixed + r.claimed + sizeOf(r.segments.list)
}

// wouldHaveExpired reports whether the spans of the log with this epoch are older than the
// retention time. An epoch is the approximate time when the spans arrived.
func (c *common) wouldHaveExpired(epoch uint64) bool {
	retention := time.Duration(c.config.Retention.Time)
	return retention > 0 && !c.env.Now().Before(time.Unix(0, int64(epoch)).Add(retention+lossMargin))
}

// lossMargin is added because spans arrive after the epoch of their log.
const lossMargin = time.Hour
