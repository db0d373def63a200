package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
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
		case <-e.stop:
			return
		case <-e.wake:
			e.runMaintenance(false)
		case <-ticker.C:
			e.runMaintenance(true)
		}
	}
}

// runMaintenance flushes what is frozen and, if all is set, does the rest of the maintenance.
func (e *exporter) runMaintenance(all bool) {
	if !e.checkPlace() {
		e.reportHealth(e.trouble())
		return
	}
	if all {
		e.freezeOld()
	}
	if e.retry.due() {
		err := e.flushAll(context.Background())
		e.retry.note(err)
		e.mu.Lock()
		e.stuck = err
		e.mu.Unlock()
	}
	if all {
		if e.ticks++; e.ticks%checkpointTicks == 0 {
			e.checkpoint()
		}
		e.removeLogs()
		e.retryRemovals()
		e.expire()
		e.checkSpace()
		e.retryLog()
	}
	if all {
		e.damage = e.damageError()
	}
	e.reportHealth(e.trouble())
	e.updateGauges()
}

// checkPlace reports whether the folder that this process has locked is still at the path of the
// store. If not, it was moved or deleted, and another process may use the path: spans are refused,
// and no file is changed. Acknowledged spans are in the folder, or in memory. If the folder is
// moved back, the store continues.
func (e *exporter) checkPlace() bool {
	err := e.dir.InPlace()
	if err != nil {
		err = fmt.Errorf("span store: spans are refused: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.moved = err
	return err == nil
}

// reportHealth reports an error and damage when they begin, change or end. While the error lasts,
// it logs it once a minute, with the number of refused requests. Damage was logged when it was
// found.
func (e *exporter) reportHealth(refused int64, err error) {
	const degraded = "span store degraded"
	switch {
	case err != nil:
		e.lines.Error(degraded, zap.Error(err), zap.Int64("free-bytes", e.free), zap.Int64("refused-requests", refused))
	case e.troubled:
		e.lines.End(degraded)
		e.lines.Info("span store recovered")
	}
	e.troubled = err != nil
	text := ""
	if err = errors.Join(err, e.damage); err != nil {
		text = fmt.Sprint(pipeline.IsNotReady(err), err)
	}
	if text != e.reported {
		e.reported = text
		e.report(err)
	}
}

// freezeOld freezes the active memtable when it is older than max_age or its log failed.
func (e *exporter) freezeOld() {
	e.intake.Lock()
	defer e.intake.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	if l := e.active; l != nil && len(e.frozen) < maxFrozen {
		l.failed = l.failed || errors.Is(l.log.Ready(), wal.ErrFailed)
		if old := e.env.Now().Sub(l.opened) >= time.Duration(e.config.Memtable.MaxAge); l.failed || old && l.table.Rows() > 0 {
			e.freeze()
		}
	}
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

// note schedules the next attempt by the outcome of the last one.
func (b *backoff) note(err error) {
	if err == nil {
		*b = backoff{max: b.max}
		return
	}
	b.wait = min(max(2*b.wait, tick/2), cmp.Or(b.max, maxBackoff))
	b.next = time.Now().Add(b.wait)
}
