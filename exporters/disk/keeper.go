package disk

import (
	"cmp"
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

// tick is how often the keeper looks after age, retention and space.
const tick = time.Second

// keep is the keeper: it flushes frozen memtables as they come, and once a second looks after everything else.
func (e *exporter) keep() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-e.stop:
			return
		case <-e.wake:
			e.tend(false)
		case <-ticker.C:
			e.tend(true)
		}
	}
}

// tend does what is due.
func (e *exporter) tend(all bool) {
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
		e.removeLogs()
		e.buryLeft()
		e.expire()
		e.checkSpace()
	}
	e.mu.Lock()
	err := errors.Join(e.stuck, e.full)
	e.mu.Unlock()
	e.tell(err)
	e.show()
}

// tell reports a trouble when it begins, when it changes, and when it ends.
func (e *exporter) tell(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == e.trouble {
		return
	}
	began, ended := e.trouble == "", text == ""
	e.trouble = text
	e.report(err)
	switch {
	case ended:
		e.log.Info("the span store is well again")
	case began:
		e.log.Error("the span store has trouble", zap.Error(err))
	}
}

// freezeOld freezes the active memtable when its time has come, or when its log takes no more.
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

// backoff spaces attempts that fail.
type backoff struct {
	most time.Duration // the longest wait; 0: maxBackoff
	wait time.Duration
	next time.Time
}

// maxBackoff is the longest wait between two attempts: how long it may take until the store has noticed that the disk works again.
const maxBackoff = 8 * tick

func (b *backoff) due() bool { return b.wait == 0 || !time.Now().Before(b.next) }

// note sets the next attempt by the outcome of one.
func (b *backoff) note(err error) {
	if err == nil {
		*b = backoff{most: b.most}
		return
	}
	b.wait = min(max(2*b.wait, tick/2), cmp.Or(b.most, maxBackoff))
	b.next = time.Now().Add(b.wait)
}
