package disk

import (
	"slices"
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

// distrust suspends expiry at start when all spans are far older than their retention: the clock of
// the machine may not be set yet.
func (j *clockGuard) distrust(now, newest time.Time, retention time.Duration) bool {
	if now.Sub(newest) <= retention+maxDowntime {
		return false
	}
	j.until = time.Now().Add(jumpHold)
	return true
}

// maxDowntime is how long a store may have been unused before its start questions the clock.
const maxDowntime = 30 * 24 * time.Hour

func (j *clockGuard) holds() bool { return time.Now().Before(j.until) }

// checkClock suspends expiry by time if all spans seem to be far too old.
func (e *exporter) checkClock() {
	retention := time.Duration(e.config.Retention.Time)
	if retention == 0 || len(e.segments) == 0 {
		return
	}
	byArrival := func(a, b *handle) int { return a.info.LastArrival.Compare(b.info.LastArrival) }
	newest := slices.MaxFunc(e.segments, byArrival).info.LastArrival
	if now := e.env.Now(); e.clock.distrust(now, newest, retention) {
		e.log.Warn("all spans are far older than their retention; they will be deleted when the hold period ends; check the clock",
			zap.Time("now", now), zap.Time("newest_span", newest), zap.Duration("hold", jumpHold))
	}
}
