package disk

import (
	"cmp"
	"fmt"
	"time"
)

// tick is the interval of the maintenance loop. Every checkpointTicks, the sizes of the logs are
// recorded.
const (
	tick            = time.Second
	checkpointTicks = 5
)

// maintain is the maintenance loop: it flushes frozen memtables when they appear, and checks age,
// retention and disk space once per tick.
func (e *exporter) maintain() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-e.intake.wake:
			e.runMaintenance(false)
		case <-ticker.C:
			e.runMaintenance(true)
		}
	}
}

// every calls work once per interval until Stop.
func (c *common) every(interval time.Duration, work func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-ticker.C:
			work()
		}
	}
}

// runMaintenance flushes frozen memtables and, if all is set, does the rest of the maintenance.
func (e *exporter) runMaintenance(all bool) {
	if !e.checkPlace() {
		e.reportHealth()
		return
	}
	if all {
		e.intake.freezeOld()
	}
	e.flusher.run()
	if all {
		if e.ticks++; e.ticks%checkpointTicks == 0 {
			e.intake.checkpoint()
		}
		e.segments.removeLogs()
		e.segments.retryRemovals()
		e.retention.expire()
		e.retention.checkSpace()
		e.intake.retryLog()
		e.health.damage = e.health.damageError()
	}
	e.reportHealth()
	e.updateGauges()
}

// checkPlace reports whether the folder that this process has locked is still at the path of the
// store. If not, it was moved or deleted, and another process may use the path. Then spans are
// refused and no file is changed. Acknowledged spans are in the folder or in memory. If the folder
// is moved back, the store continues.
func (e *exporter) checkPlace() bool {
	err := e.dir.InPlace()
	if err != nil {
		err = fmt.Errorf("span store: spans are refused: %w", err)
	}
	e.intake.note(&e.intake.moved, err)
	return err == nil
}

// reportHealth reports what is wrong now.
func (e *exporter) reportHealth() {
	refused, err := e.intake.trouble()
	e.health.update(e.retention.free, refused, err)
}

// backoff spaces failing attempts: the wait doubles with each.
type backoff struct {
	max  time.Duration // maximum wait; 0: maxBackoff
	wait time.Duration
	next time.Time
}

// maxBackoff is the maximum wait between two attempts, and so the maximum time until the store
// notices that the disk works again.
const maxBackoff = 8 * tick

func (b *backoff) due() bool { return b.wait == 0 || !time.Now().Before(b.next) }

// note schedules the next attempt according to the outcome of the last one.
func (b *backoff) note(err error) {
	if err == nil {
		*b = backoff{max: b.max}
		return
	}
	b.wait = min(max(2*b.wait, tick/2), cmp.Or(b.max, maxBackoff))
	b.next = time.Now().Add(b.wait)
}
