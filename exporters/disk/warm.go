package disk

import (
	"context"
	"errors"
	"slices"
	"time"
)

// warmShare is what looking for the parents of calls ahead of queries takes of one processor while spans come in.
const warmShare = 0.01

// warmAlways keeps ready what queries for dependencies need, see search.Engine.Warm, until Stop. It looks again when segments came or went.
// It has the lowest priority: like a merge it stands still while a memtable waits for its flush, and rests while spans come in. It also
// lets a merge end first, which replaces segments that it would have looked at.
func (e *exporter) warmAlways() {
	ctx := untilStop{context.Background(), e.stop}
	// Half a tick behind the keeper, which deletes files: they stay as long as somebody reads them.
	ticker := time.NewTicker(tick / 2)
	defer ticker.Stop()
	var load load
	var known []*handle
	var retry backoff
	for first := true; ; first = false {
		select {
		case <-e.stop:
			return
		case <-ticker.C:
			if first {
				ticker.Reset(tick)
			}
		}
		now, free := e.mayWarm(&load)
		if !free || slices.Equal(now, known) || !retry.due() {
			continue
		}
		err := e.Warm(ctx, func(worked time.Duration) error { return e.paceWarm(worked, &load) })
		if err == nil {
			known = now
		}
		if !errors.Is(err, errLater) {
			retry.note(err)
		}
	}
}

// mayWarm returns the segments, and whether nothing that is more urgent is under way.
func (e *exporter) mayWarm(l *load) (segments []*handle, free bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l.busy(e.active)
	return e.segments, len(e.frozen) == 0 && e.merging == nil && !e.closed
}

// errLater ends Warm; the next tick goes on.
var errLater = errors.New("something more urgent is under way")

// paceWarm rests for what makes up for the time worked.
func (e *exporter) paceWarm(worked time.Duration, l *load) error {
	e.mu.Lock()
	busy := l.busy(e.active)
	e.mu.Unlock()
	if busy {
		t := time.NewTimer(restFor(worked, warmShare))
		defer t.Stop()
		select {
		case <-e.stop:
			return errStopped
		case <-t.C:
		}
	}
	if _, free := e.mayWarm(l); !free {
		return errLater
	}
	return nil
}
