package disk

import (
	"errors"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/graph"
)

// warmShare is the share of one CPU for filling the edge cache ahead of queries while spans arrive.
const warmShare = 0.01

// warmer fills the edge cache ahead of queries.
type warmer struct {
	merger *merger
	graphs *graph.Builder
	load   load
}

// run keeps the edge cache up to date for dependency queries until Stop, see graph.Builder.Warm. It
// runs whenever segments were added or removed. It has the lowest priority: like a merge, it pauses
// while a memtable waits for its flush, and rests while spans arrive. It also waits for a running
// merge, which replaces segments that it would read.
func (w *warmer) run() {
	// Runs half a tick after the maintenance loop, which deletes files: a file stays while it is
	// read.
	ticker := time.NewTicker(tick / 2)
	defer ticker.Stop()
	var known []*handle
	var retry backoff
	for first := true; ; first = false {
		select {
		case <-w.merger.ctx.Done():
			return
		case <-ticker.C:
			if first {
				ticker.Reset(tick)
			}
		}
		now, free := w.mayWarm()
		if !free || slices.Equal(now, known) || !retry.due() {
			continue
		}
		err := w.graphs.Warm(w.merger.ctx, w.pace)
		if err == nil {
			known = now
		}
		if !errors.Is(err, errLater) {
			retry.note(err)
		}
	}
}

// mayWarm returns the segments, and whether no more urgent work is running.
func (w *warmer) mayWarm() (now []*handle, free bool) {
	w.load.busy(w.merger.intake)
	in := w.merger.intake
	in.mu.Lock()
	defer in.mu.Unlock()
	return w.merger.segments.all(), len(in.frozen) == 0 && !w.merger.running.Load() && !in.closed
}

// errLater ends Warm; the next tick continues it.
var errLater = errors.New("more urgent work is running")

// pace rests in proportion to the working time while spans arrive.
func (w *warmer) pace(worked time.Duration) error {
	if w.load.busy(w.merger.intake) {
		t := time.NewTimer(restFor(worked, warmShare))
		defer t.Stop()
		select {
		case <-w.merger.ctx.Done():
			return errStopped
		case <-t.C:
		}
	}
	if _, free := w.mayWarm(); !free {
		return errLater
	}
	return nil
}
