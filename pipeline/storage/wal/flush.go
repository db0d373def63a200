package wal

import (
	"errors"
	"fmt"
	"time"
)

// disk is what only the leader touches.
type disk struct {
	part     *part // nil once the log has failed or is closed
	n        int   // number of the part
	written  uint64
	synced   uint64 // sequence numbers of the last record that was written, and synced
	lastSync time.Time
	stats    Stats // counted here, published by finish

	// unsynced holds all groups that are not known to be synced, as they are in the file; those from fresh on have yet to be written. In
	// SyncOS groups leave it when they are written.
	unsynced []byte
	fresh    int
}

// flush writes what is pending, syncs if told to, and gives the outcome to the waiters. The caller has the token.
func (l *Log) flush(sync bool) {
	d := &l.disk
	if d.part == nil {
		return
	}
	g := l.take()
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
	l.finish(g, err)
}

// take moves the pending records to the disk's buffer, as one group, and returns who waits for them; nil if there are none.
func (l *Log) take() *group {
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

// rotate gives up the part that failed and writes everything that is not known to be durable to a new one. The error wraps ErrFailed;
// the log has no part then.
func (l *Log) rotate(cause error) error {
	d := &l.disk
	d.part.close() // it has failed already; what Close says changes nothing
	d.part = nil
	next, err := l.dir.newPart(l.epoch, d.n+1)
	if err != nil {
		return fmt.Errorf("%w: %w; then %w", ErrFailed, cause, err)
	}
	d.part, d.fresh = next, 0
	err = d.write()
	if err == nil && l.opts.Mode != SyncOS {
		err = d.sync()
	}
	if err != nil {
		d.part = nil
		return fmt.Errorf("%w: %w; then %w", ErrFailed, cause, errors.Join(err, l.dir.discard(next)))
	}
	d.forget()
	d.n++
	d.stats.Rotations++
	d.stats.LastFailure = cause
	return nil
}

// finish publishes what flush did. An error is final for the log, so that those who wait for the next group get it too.
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

// close closes the file. failure is what the log has failed with, if it has.
func (d *disk) close(failure error) error {
	if d.part == nil {
		return failure
	}
	err := d.part.close()
	d.part = nil
	return err
}
