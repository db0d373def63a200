package disk

import (
	"context"
	"errors"
	"slices"
	"time"
)

// warmShare is the share of one processor for filling the edge cache ahead of queries while spans
// arrive.
const warmShare = 0.01

// warmLoop keeps the edge cache up to date for dependency queries, see graph.Builder.Warm, until
// Stop. It runs again when segments were added or removed. It has the lowest priority: like a merge
// it pauses while a memtable waits for its flush, and rests while spans arrive. It also waits for a
// running merge, which replaces segments that it would read.
func (e *exporter) warmLoop() {
	ctx := untilStop{context.Background(), e.stop}
	// Runs half a tick after the maintenance loop, which deletes files: a file stays while it is
	// read.
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

// mayWarm returns the segments, and whether no more urgent work is running.
func (e *exporter) mayWarm(l *load) (segments []*handle, free bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l.busy(e.active)
	return e.segments, len(e.frozen) == 0 && e.merging == nil && !e.closed
}

// errLater ends Warm; the next tick continues it.
var errLater = errors.New("more urgent work is running")

// paceWarm rests in proportion to the time worked while spans arrive.
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
