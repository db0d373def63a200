package disk

import (
	"errors"
	"time"
)

// Merging has low priority:
//
//   - While a memtable waits for its flush or is being flushed, a merge pauses. Requests that wait
//     for capacity wait for a flush, too.
//   - While spans arrive, merging takes MergeConfig.BusyShare of one CPU: it works a little,
//     then rests in proportion.
//   - When no span has arrived for quietTime, it works without rest, on at most one CPU.
//   - When more than maxBacklog segments wait to be merged, it no longer rests: spans arrive faster
//     than the share allows for, and a growing number of segments would slow down queries.
//   - When more than urgentBacklog wait, it does not wait for flushes either. Flushes then take
//     longer and senders wait, so that the number of segments stays bounded at any rate of spans.
//
// Merging does not wait for queries. A merge delays a query by a few milliseconds at most.
const (
	quietTime     = time.Second
	maxBacklog    = 64
	urgentBacklog = 128
)

// Reasons why a merge is aborted.
var (
	errStopped      = errors.New("span store is stopping")
	errInputExpired = errors.New("segment expired during its merge")
	errDiskFull     = errors.New("disk is full")
)

// aborted reports whether a merge ended for a reason that is not a failure.
func aborted(err error) bool {
	return errors.Is(err, errStopped) || errors.Is(err, errInputExpired) || errors.Is(err, errDiskFull)
}

// pacer delays a merge in favor of other work. Its step is segment.MergeOptions.Pace.
type pacer struct {
	merger *merger
	merge  *merge
	load   *load
	since  time.Time // when the merge last resumed
}

// step waits while other work has priority.
func (p *pacer) step() error {
	paused := time.Now()
	worked := paused.Sub(p.since)
	if err := p.awaitFlushes(); err != nil {
		return err
	}
	if p.mayRunFreely() {
		worked = 0
	}
	if err := p.wait(restFor(worked, p.merger.config.Merge.BusyShare)-time.Since(paused), nil); err != nil {
		return err
	}
	p.since = time.Now()
	p.merger.metrics.mergePauses.Add(p.since.Sub(paused).Seconds())
	return nil
}

// restFor returns how long to rest after work so that work takes the given share of one CPU.
func restFor(worked time.Duration, share float64) time.Duration {
	return time.Duration(float64(worked) * (1/share - 1))
}

// awaitFlushes returns when no memtable waits for a flush or the merge is urgent, or with the
// reason to abort.
func (p *pacer) awaitFlushes() error {
	for {
		in := p.merger.intake
		in.mu.Lock()
		err, pending, capacity := p.interrupted(), len(in.frozen) > 0, in.capacity
		in.mu.Unlock()
		if err != nil || !pending || p.merge.urgent {
			return err
		}
		if err := p.wait(tick, capacity); err != nil {
			return err
		}
	}
}

// interrupted returns why a merge must be aborted, or nil. The caller holds intake.mu.
func (p *pacer) interrupted() error {
	in, s := p.merger.intake, p.merger.segments
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case in.closed:
		return errStopped
	case p.merge.inputExpired:
		return errInputExpired
	case in.full != nil, in.stuck != nil:
		return errDiskFull // even if the disk fails; the output of the merge may take the missing space
	}
	return nil
}

// mayRunFreely reports whether the merge need not rest.
func (p *pacer) mayRunFreely() bool { return p.merge.hurry || !p.load.busy(p.merger.intake) }

// wait waits for d, or until the channel is closed; a nil channel is never closed.
func (p *pacer) wait(d time.Duration, until <-chan struct{}) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-until:
	case <-p.merger.ctx.Done():
		return errStopped
	}
	return nil
}

// load tracks whether spans arrive.
type load struct {
	epoch uint64
	rows  int
	grown time.Time // when rows last increased
}

// busy reports whether spans arrived in the active memtable within quietTime.
func (l *load) busy(in *intake) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	now := time.Now()
	if active := in.active; active != nil {
		if rows := active.table.Rows(); active.epoch != l.epoch || rows != l.rows {
			l.epoch, l.rows, l.grown = active.epoch, rows, now
		}
	}
	return now.Sub(l.grown) < quietTime
}
