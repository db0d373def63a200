package disk

import (
	"time"

	"go.uber.org/zap"
)

// A clock that is set while the process runs, for example after a boot without a time source, can
// make recent spans look years old. When wall time and elapsed time differ by more than jumpLimit
// between two checks, nothing expires by time for jumpHold: long enough for an operator to see the
// warning and correct the clock.
const jumpLimit, jumpHold = time.Hour, 6 * time.Hour

// clockGuard detects jumps of the clock. The zero value is ready to use.
type clockGuard struct {
	wall   time.Time // of the last check, by the store's clock
	passed time.Time // of the last check, to measure elapsed time
	until  time.Time // end of the hold
}

// jumped reports whether the clock jumped since the last check.
func (j *clockGuard) jumped(wall time.Time) bool {
	now := time.Now()
	last := *j
	j.wall, j.passed = wall.Round(0), now
	if last.passed.IsZero() {
		return false
	}
	drift := j.wall.Sub(last.wall) - now.Sub(last.passed)
	if drift.Abs() <= jumpLimit {
		return false
	}
	j.until = now.Add(jumpHold)
	return true
}

// maxDowntime is how long a store may have been unused before its start questions the clock. A
// shorter retention time takes precedence.
const maxDowntime = 24 * time.Hour

// distrust suspends expiry by time at start if the last spans arrived so long ago that the
// machine's clock may be wrong. It returns for how long, at most the retention time.
func (j *clockGuard) distrust(now, newest time.Time, retention time.Duration) (hold time.Duration) {
	if now.Sub(newest) <= min(retention, maxDowntime) {
		return 0
	}
	hold = min(jumpHold, retention)
	j.until = time.Now().Add(hold)
	return hold
}

func (j *clockGuard) holds() bool { return time.Now().Before(j.until) }

// checkClock suspends expiry by time if spans would expire now and the last ones arrived long ago:
// the clock may have been set ahead while no process ran.
func (r *retention) checkClock() {
	retention, now := time.Duration(r.config.Retention.Time), r.env.Now()
	var newest time.Time
	expired := false
	for _, h := range r.segments.all() {
		expired = expired || h.info.LastArrival.Before(now.Add(-retention))
		newest = latest(newest, h.info.LastArrival)
	}
	for _, l := range r.intake.frozen {
		newest = latest(newest, time.Unix(0, int64(l.epoch))) // about when the first span of its log arrived
	}
	if retention == 0 || !expired {
		return
	}
	if hold := r.clock.distrust(now, newest, retention); hold > 0 {
		r.log.Warn("spans are older than the retention time and none arrived lately; deleting spans by age is suspended; check the clock",
			zap.Time("now", now), zap.Time("newest_span", newest), zap.Duration("hold", hold))
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
