package disk

import (
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/disk/internal/memtable"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

// live is a memtable and the log that makes it durable. They share an epoch.
type live struct {
	epoch     uint64
	table     *memtable.Table
	log       *wal.Log // nil if the table was rebuilt from a log
	opened    time.Time
	failed    bool        // the log may lack definitions for later records: append no more; guarded by intake.writing
	reported  atomic.Bool // the failure of the log was logged
	damaged   bool        // acknowledged spans of the log could not be read: keep its files
	rotations uint64      // rotations of the log that were reported
	refs      int         // held by the store and by views; guarded by intake.mu
	deletion  filterState // guarded by deletions.mu
}

// begin creates a memtable with its log. The caller holds writing.
func (in *intake) begin() (*live, error) {
	now := in.env.Now()
	// An epoch is used once. It is a time, so that senders cannot guess it, see wal.Dir.Create.
	epoch := max(in.lastEpoch+1, uint64(now.UnixNano()))
	in.lastEpoch = epoch // even if that fails: the rest of the log would collide
	if err := in.dir.InPlace(); err != nil {
		return nil, err
	}
	log, err := in.logs.Create(epoch)
	if err != nil {
		return nil, err
	}
	return &live{epoch: epoch, table: in.newTable(), log: log, opened: now, refs: 1}, nil
}

func (in *intake) newTable() *memtable.Table {
	return memtable.New(memtable.Options{Pool: in.chunks, MaxBytes: int64(in.config.Memtable.MaxBytes), MaxRows: in.config.Memtable.MaxSpans})
}

// freeze hands the active memtable to the maintenance loop. The caller holds mu, and writing so
// that nothing is appended to the memtable.
func (in *intake) freeze() {
	if in.active == nil {
		return
	}
	in.frozen = append(in.frozen, in.active)
	in.active = nil
	select {
	case in.wake <- struct{}{}:
	default:
	}
}

// close commits pending records and closes the log.
func (l *live) close() error {
	if l.log == nil {
		return nil
	}
	return l.log.Close()
}

// memtables returns all memtables, oldest first. The caller holds mu.
func (in *intake) memtables() []*live {
	if in.active == nil {
		return in.frozen
	}
	return append(in.frozen[:len(in.frozen):len(in.frozen)], in.active)
}

func (in *intake) release(l *live) {
	in.mu.Lock()
	l.refs--
	last := l.refs == 0
	in.mu.Unlock()
	if last {
		l.table.Release()
	}
}

// checkpoint records on disk how many spans the logs hold, so that the next start knows how many
// are lost if the disk loses a log.
func (in *intake) checkpoint() {
	in.mu.Lock()
	weights := map[*wal.Log]int64{}
	for _, l := range in.memtables() {
		if l.log != nil {
			weights[l.log] = int64(l.table.Rows())
		}
	}
	in.mu.Unlock()
	if err := in.logs.Checkpoint(weights); err != nil {
		in.log.Debug("cannot record the size of the write-ahead logs; will retry", zap.Error(err))
	}
	if err := in.dir.SaveList(); err != nil {
		in.log.Debug("cannot record the names of the segments; will retry", zap.Error(err))
	}
}

// freezeOld freezes the active memtable when it is older than max_age or its log failed.
func (in *intake) freezeOld() {
	in.writing.Lock()
	defer in.writing.Unlock()
	in.mu.Lock()
	defer in.mu.Unlock()
	if l := in.active; l != nil && len(in.frozen) < maxFrozen {
		l.failed = l.failed || errors.Is(l.log.Ready(), wal.ErrFailed)
		if old := in.env.Now().Sub(l.opened) >= time.Duration(in.config.Memtable.MaxAge); l.failed || old && l.table.Rows() > 0 {
			in.freeze()
		}
	}
}
