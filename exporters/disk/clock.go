package disk

import (
	"slices"
	"time"

	"go.uber.org/zap"
)

// A clock that is set while the process runs, such as after a boot without one, makes spans of a minute ago look years old. When wall time and
// time passed differ by more than jumpLimit between two looks, nothing expires by time for jumpHold: long enough for somebody to see the
// warning, and for a clock that went wrong to be set right.
const jumpLimit, jumpHold = time.Hour, 6 * time.Hour

// jumpStop notices jumps of the clock. The zero value is ready.
type jumpStop struct {
	wall   time.Time // of the last look, by the store's clock
	passed time.Time // of the last look, for measuring what passed
	until  time.Time
}

// jumped reports whether the clock jumped since the last look.
func (j *jumpStop) jumped(wall time.Time) bool {
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

// distrust holds expiry when all that a store has is far too old at its start: the machine may not know the time yet.
func (j *jumpStop) distrust(now, newest time.Time, keep time.Duration) bool {
	if now.Sub(newest) <= keep+farBehind {
		return false
	}
	j.until = time.Now().Add(jumpHold)
	return true
}

// farBehind is how long a store may have been out of use without a doubt about the clock.
const farBehind = 30 * 24 * time.Hour

func (j *jumpStop) holds() bool { return time.Now().Before(j.until) }

// checkClock holds expiry by time where all spans seem to be of long ago.
func (e *exporter) checkClock() {
	keep := time.Duration(e.config.Retention.Time)
	if keep == 0 || len(e.segments) == 0 {
		return
	}
	newest := slices.MaxFunc(e.segments, func(a, b *handle) int { return a.info.LastArrival.Compare(b.info.LastArrival) }).info.LastArrival
	if now := e.env.Now(); e.jump.distrust(now, newest, keep) {
		e.log.Warn("all spans are far older than their retention: if the clock is right, they go in a while", zap.Time("now", now),
			zap.Time("newest_span", newest), zap.Duration("hold", jumpHold))
	}
}
