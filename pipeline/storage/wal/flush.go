package wal

import (
	"errors"
	"fmt"
	"time"
)

// disk is the state that only the leader uses.
type disk struct {
	part     *part // nil once the log has failed or is closed
	n        int   // number of the part
	written  uint64
	synced   uint64 // sequence numbers of the last record written, and of the last synced
	lastSync time.Time
	stats    Stats // counted here, published by finish

	// unsynced holds all groups that are not known to be synced, as they are in the file; those
	// from fresh on are not written yet. In mode SyncOS, groups are removed once written.
	unsynced []byte
	fresh    int
}

// flush writes pending records, syncs if requested, and passes the result to the waiters. The
// caller holds the token.
func (l *Log) flush(sync bool) {
	d := &l.disk
	if d.part == nil {
		return
	}
	g := l.takePending()
	err := d.write()
	if l.opts.Mode == SyncOS && err == nil {
		d.forget()
	}
	if err == nil && (sync || len(d.unsynced) > l.opts.MaxPending) {
		err = d.sync()
	}
	if err != nil {
		err = l.rotate(err)
	}
	if err == nil {
		err = d.checkPlace()
	}
	l.finish(g, err)
}

// checkPlace fails the log if its file is no longer in its directory: the next start would not find
// what was written to it. The owner still has the acknowledged records in memory, or knows
// where the directory is.
func (d *disk) checkPlace() error {
	err := d.part.file.InPlace()
	if err == nil {
		return nil
	}
	d.part.close() // the log has failed: the result of Close does not matter
	d.part = nil
	return fmt.Errorf("%w: %w", ErrFailed, err)
}

// takePending moves the pending records to the disk's buffer, as one group, and returns that group,
// or nil if there are none.
func (l *Log) takePending() *group {
	l.mu.Lock()
	defer l.mu.Unlock()
	d := &l.disk
	d.fresh = len(d.unsynced)
	if len(l.pending) == 0 {
		return nil
	}
	if d.fresh == 0 {
		d.unsynced, l.pending = l.pending, d.unsynced
	} else {
		d.unsynced = append(d.unsynced, l.pending...)
	}
	l.pending = l.pending[:0]
	if cap(l.pending) > 2*l.opts.MaxPending {
		l.pending = nil
	}
	d.unsynced = appendZeros(d.unsynced, roundUp(len(d.unsynced), groupUnit)-len(d.unsynced))
	d.written, l.taken = l.last, l.last
	l.current, l.next = l.next, newGroup()
	return l.current
}

func (d *disk) write() error {
	if d.fresh == len(d.unsynced) {
		return nil
	}
	start := time.Now()
	if err := d.part.write(d.unsynced[d.fresh:]); err != nil {
		return err
	}
	d.stats.Groups++
	d.stats.Written += int64(len(d.unsynced) - d.fresh)
	d.stats.WriteTime += time.Since(start)
	return nil
}

func (d *disk) sync() error {
	if len(d.unsynced) == 0 {
		return nil
	}
	start := time.Now()
	if err := d.part.sync(); err != nil {
		return err
	}
	d.lastSync = time.Now()
	d.stats.Syncs++
	d.stats.SyncTime += d.lastSync.Sub(start)
	d.synced = d.written
	d.forget()
	return nil
}

func (d *disk) forget() { d.unsynced, d.fresh = d.unsynced[:0], 0 }

// rotate abandons the failed part and writes everything that is not known to be durable to a new
// one. After an error, which wraps ErrFailed, the log has no part.
func (l *Log) rotate(cause error) error {
	d := &l.disk
	d.part.close() // it has already failed: the result of Close does not matter
	d.part = nil
	next, err := l.dir.newPart(l.epoch, d.n+1)
	if err != nil {
		return fmt.Errorf("%w: %w; retry in a new file: %w", ErrFailed, cause, err)
	}
	d.part, d.fresh = next, 0
	err = d.write()
	if err == nil && l.opts.Mode != SyncOS {
		err = d.sync()
	}
	if err != nil {
		d.part = nil
		return fmt.Errorf("%w: %w; retry in a new file: %w", ErrFailed, cause, errors.Join(err, l.dir.discard(next)))
	}
	d.forget()
	d.n++
	d.stats.Rotations++
	d.stats.LastFailure = cause
	return nil
}

// finish publishes the result of flush. An error is final for the log, so the waiters for the next
// group get it too.
func (l *Log) finish(g *group, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		l.failed, l.pending = err, nil
		l.next.finish(err)
	} else {
		l.acked, l.durable = l.disk.written, l.disk.synced
	}
	records := l.stats.Records
	l.stats = l.disk.stats
	l.stats.Records = records
	if l.disk.part != nil {
		l.stats.Size = l.disk.part.pos
	}
	if g != nil {
		g.finish(err)
	}
}

// close closes the file. failure is the error of a failed log, else nil.
func (d *disk) close(failure error) error {
	if d.part == nil {
		return failure
	}
	err := d.part.close()
	d.part = nil
	return err
}
