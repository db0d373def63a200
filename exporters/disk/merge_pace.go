package disk

import (
	"errors"
	"time"
)

// Merging has low priority, which means:
//
//   - While a memtable waits for its flush, or is being written, a merge stands still. Requests that wait for room wait for a flush, too.
//   - While spans come in, merging takes MergeConfig.BusyShare of one processor: it works a little, then rests for as long as makes up for it.
//   - When no span has come for quietTime it works without rest, on one processor; it never uses more.
//   - When more than maxBacklog segments wait to be merged, it no longer rests: spans come faster, for longer, than the share allows for, and
//     with ever more segments queries would suffer instead.
//   - When more than urgentBacklog wait, it does not even wait for flushes: these take longer then, and the senders wait. Thus the number of
//     segments is bounded, however fast and long spans come.
//
// Queries do not hold it up. They find the processors busy for a few milliseconds at most, as with any other query beside them.
const (
	quietTime     = time.Second
	maxBacklog    = 64
	urgentBacklog = 128
)

// Why a merge ends before its time.
var (
	errStopped   = errors.New("the store is stopping")
	errInputGone = errors.New("a segment expired while it was merged")
	errNoRoom    = errors.New("the disk is full")
)

// aborted reports whether a merge ended for a reason that is no failure.
func aborted(err error) bool {
	return errors.Is(err, errStopped) || errors.Is(err, errInputGone) || errors.Is(err, errNoRoom)
}

// pacer makes a merge give way. Its step is segment.MergeOptions.Pace.
type pacer struct {
	store *exporter
	merge *merge
	load  *load
	since time.Time // when it last went on
}

// step waits for as long as others come first.
func (p *pacer) step() error {
	paused := time.Now()
	worked := paused.Sub(p.since)
	if err := p.awaitFlushes(); err != nil {
		return err
	}
	if p.restless() {
		worked = 0
	}
	if err := p.wait(restFor(worked, p.store.config.Merge.BusyShare)-time.Since(paused), nil); err != nil {
		return err
	}
	p.since = time.Now()
	p.store.metrics.mergePauses.Add(p.since.Sub(paused).Seconds())
	return nil
}

// restFor returns how long to rest after work that may take a share of one processor.
func restFor(worked time.Duration, share float64) time.Duration {
	return time.Duration(float64(worked) * (1/share - 1))
}

// awaitFlushes returns when no memtable waits to be written, or the merge must go on all the same; or with the reason why it ends.
func (p *pacer) awaitFlushes() error {
	for {
		e := p.store
		e.mu.Lock()
		err, pending, room := p.interrupted(), len(e.frozen) > 0, e.room
		e.mu.Unlock()
		if err != nil || !pending || p.merge.urgent {
			return err
		}
		if err := p.wait(tick, room); err != nil {
			return err
		}
	}
}

// interrupted tells why a merge must not go on. The caller holds mu.
func (p *pacer) interrupted() error {
	switch {
	case p.store.closed:
		return errStopped
	case p.merge.lost:
		return errInputGone
	case p.store.full != nil, p.store.stuck != nil:
		return errNoRoom // or a disk that fails; what the merge has written so far may be what is missing
	}
	return nil
}

// restless reports whether the merge need not rest.
func (p *pacer) restless() bool {
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	return p.merge.hurry || !p.load.busy(p.store.active)
}

// wait waits for a time, or until something is closed; nil is never closed.
func (p *pacer) wait(d time.Duration, until <-chan struct{}) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-until:
	case <-p.store.stop:
		return errStopped
	}
	return nil
}

// load notices whether spans come in.
type load struct {
	epoch uint64
	rows  int
	grown time.Time // when there last were more than before
}

// busy looks at the active memtable, which may be nil, and reports whether spans came a moment ago. The caller holds exporter.mu.
func (l *load) busy(active *live) bool {
	now := time.Now()
	if active != nil {
		if rows := active.table.Rows(); active.epoch != l.epoch || rows != l.rows {
			l.epoch, l.rows, l.grown = active.epoch, rows, now
		}
	}
	return now.Sub(l.grown) < quietTime
}
