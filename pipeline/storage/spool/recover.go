package spool

import (
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

// defaultLogSize is LogSize where it is 0.
const defaultLogSize = 16 << 20

// Open opens the queue in a directory, which is made if it is missing; nobody else may have it open. Items that were not done are in the
// queue again. Logs that lost records, or that another version has written, are set aside, and Options.Lost is told. What cannot be
// read now counts when it can be.
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
	const pending = 1 << 30 // what callers have in flight is bounded by them
	logs, err := wal.OpenDir(fsys, dir, wal.Options{Mode: wal.SyncAlways, MaxPending: pending, Step: min(1<<20, o.LogSize), Size: o.LogSize, Spares: 1})
	if err != nil {
		return nil, fmt.Errorf("opening the queue: %w", err)
	}
	q := &Queue{logs: logs, opt: o, changed: make(chan struct{})}
	if err := q.recover(); err != nil {
		return nil, fmt.Errorf("recovering the queue: %w", err)
	}
	return q, nil
}

// recover makes the list of logs with something left in them. The done record of an item stands behind it, in the same log or a later one: so
// the latest log is read first, and no more than one log's items are in memory.
func (q *Queue) recover() error {
	epochs, err := q.logs.Epochs()
	if err != nil {
		return err
	}
	done := map[uint64][]uint64{} // sequence numbers by log, of all logs that there are
	for _, epoch := range epochs {
		q.lastEpoch = max(q.lastEpoch, epoch)
		done[epoch] = nil
	}
	for _, epoch := range slices.Backward(epochs) {
		p := &part{epoch: epoch}
		err := q.scan(p, done)
		if errors.Is(err, wal.ErrVersion) {
			q.opt.Lost(Loss{Epoch: epoch, Err: err})
			if err := q.logs.Quarantine(epoch, q.opt.Quarantine); err != nil {
				return err
			}
			continue
		}
		p.cause = err
		q.parts = append(q.parts, p)
		q.state.add(p.unread)
		delete(done, epoch)
	}
	slices.Reverse(q.parts)
	q.sweep()
	return nil
}

// scan notes what a log holds, as far as it can be read now. It takes from done what later logs know of it, and adds what it knows itself.
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
	if unknown != nil || err == nil && !report.Sound() {
		p.damaged = true
		q.opt.Lost(Loss{Epoch: p.epoch, Items: report.Lost, Report: report, Err: unknown})
	}
	for _, seq := range done[p.epoch] {
		delete(items, seq)
		p.skip(seq)
	}
	for _, s := range items {
		p.unread.add(s)
	}
	p.onDisk = len(items) > 0 || err != nil || unreadable(report) != nil
	return err
}
