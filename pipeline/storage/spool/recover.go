package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

// defaultLogSize is used if Options.LogSize is 0.
const defaultLogSize = 16 << 20

// Open opens the queue in a directory, which is created if missing; no other process may have it
// open. Items that were not done are back in the queue. Logs that lost records, or were written by
// another version, are moved to the quarantine and reported to Options.Lost. Items of a log that
// cannot be read now are counted as soon as it can be read.
func Open(fsys vfs.FS, dir string, o Options) (*Queue, error) {
	if o.LogSize <= 0 {
		o.LogSize = defaultLogSize
	}
	if o.Quarantine == "" {
		o.Quarantine = path.Join(dir, "damaged")
	}
	if o.Lost == nil {
		o.Lost = func(Loss) {}
	}
	if o.Unsynced == nil {
		o.Unsynced = func(_, _ uint64) {}
	}
	if o.ListLost == nil {
		o.ListLost = func(error) {}
	}
	const pending = 1 << 30 // callers bound what they have in flight
	options := wal.Options{Mode: wal.SyncAlways, MaxPending: pending, Step: min(1<<20, o.LogSize), Size: o.LogSize, Spares: 1}
	logs, err := wal.OpenDir(fsys, dir, options)
	if err != nil {
		return nil, fmt.Errorf("opening the queue: %w", err)
	}
	q := &Queue{logs: logs, opt: o, changed: make(chan struct{})}
	if err := q.recover(); err != nil {
		return nil, fmt.Errorf("recovering the queue: %w", err)
	}
	return q, nil
}

// recover lists the logs that still hold items. The done record of an item comes after it, in the
// same log or a later one. So the latest log is read first, and the items of at most one log are in
// memory.
func (q *Queue) recover() error {
	epochs, err := q.logs.Epochs()
	if err != nil {
		return err
	}
	q.reportMissing()             // before a log is removed
	done := map[uint64][]uint64{} // sequence numbers by epoch, for all logs
	for _, epoch := range epochs {
		q.lastEpoch = max(q.lastEpoch, epoch)
		done[epoch] = nil
	}
	for _, epoch := range slices.Backward(epochs) {
		p := &part{epoch: epoch}
		err := q.scan(p, done)
		if errors.Is(err, wal.ErrVersion) {
			q.opt.Lost(Loss{Epoch: epoch, Items: 1, Err: err})
			if err := q.logs.Quarantine(epoch, q.opt.Quarantine); err != nil {
				return err
			}
			continue
		}
		p.cause, p.unknown = err, err != nil && !errors.Is(err, fs.ErrNotExist) // a link to nowhere
		q.parts = append(q.parts, p)
		q.state.addState(p.unread)
		delete(done, epoch)
	}
	slices.Reverse(q.parts)
	q.sweep()
	return nil
}

// ErrGone is the cause of the loss of a log whose files are gone. It is wrapped by Loss.Err.
var ErrGone = errors.New("file of the queue is gone")

// reportMissing reports logs whose files are gone.
func (q *Queue) reportMissing() {
	missing, err := q.logs.Missing()
	if err != nil {
		q.opt.ListLost(err)
	}
	for _, m := range missing {
		q.lastEpoch = max(q.lastEpoch, m.Epoch)
		q.opt.Lost(Loss{Epoch: m.Epoch, Items: max(m.Records, 1), Err: ErrGone})
	}
}

// scan records what a log holds, as far as it can be read now. It uses the done records of later
// logs and adds its own to done.
func (q *Queue) scan(p *part, done map[uint64][]uint64) error {
	items := map[uint64]State{} // by sequence number, one each
	var unknown error
	report, err := q.logs.Replay(p.epoch, func(seq uint64, payload []byte) error {
		r, err := readRecord(payload)
		switch {
		case err != nil:
			unknown = err
		case r.kind == kindItem:
			items[seq] = State{Items: 1, Bytes: int64(len(r.payload)), Weight: r.weight}
		default:
			if of, ok := done[r.item.epoch]; ok {
				done[r.item.epoch] = append(of, r.item.seq)
				p.notes = append(p.notes, r.item)
			}
		}
		return nil
	})
	switch {
	case unknown != nil || err == nil && !report.Sound():
		p.damaged, p.lost = true, lostRecords(&report)
		q.opt.Lost(Loss{Epoch: p.epoch, Items: p.lost, Report: report, Err: unknown})
	case err == nil && report.Unsynced > 0:
		q.opt.Unsynced(p.epoch, report.Unsynced)
	}
	for _, seq := range done[p.epoch] {
		delete(items, seq)
		p.skip(seq)
	}
	for _, s := range items {
		p.unread.addState(s)
	}
	p.onDisk = len(items) > 0 || err != nil || unreadable(report) != nil
	return err
}

// lostRecords returns how many records of a damaged log may be lost, at least 1.
func lostRecords(r *wal.Report) uint64 {
	lost := r.Lost
	if r.Doubtful {
		lost++ // the last one may have been acknowledged
	}
	return max(lost, 1)
}
