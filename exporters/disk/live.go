package disk

import (
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
	failed    bool        // the log may lack definitions for later records: append no more; guarded by exporter.intake
	reported  atomic.Bool // the failure of the log was logged
	damaged   bool        // acknowledged spans of the log could not be read: keep its files
	rotations uint64      // rotations of the log that were reported
	refs      int         // held by the store and by views; guarded by exporter.mu
	deletion  filterState // guarded by exporter.mu
}

// begin creates a memtable with its log. The caller holds intake.
func (e *exporter) begin() (*live, error) {
	now := e.env.Now()
	// An epoch is used once. It is a time, so that senders cannot guess it, see wal.Dir.Create.
	epoch := max(e.lastEpoch+1, uint64(now.UnixNano()))
	e.lastEpoch = epoch // also if that fails: the rest of the log would collide
	if err := e.dir.InPlace(); err != nil {
		return nil, err
	}
	log, err := e.logs.Create(epoch)
	if err != nil {
		return nil, err
	}
	return &live{epoch: epoch, table: e.newTable(), log: log, opened: now, refs: 1}, nil
}

func (e *exporter) newTable() *memtable.Table {
	return memtable.New(memtable.Options{Pool: e.chunks, MaxBytes: int64(e.config.Memtable.MaxBytes), MaxRows: e.config.Memtable.MaxSpans})
}

// freeze hands the active memtable to the maintenance loop. The caller holds intake, so that
// nothing is appended to it, and mu.
func (e *exporter) freeze() {
	if e.active == nil {
		return
	}
	e.frozen = append(e.frozen, e.active)
	e.active = nil
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// close commits what is pending in the log and closes it.
func (l *live) close() error {
	if l.log == nil {
		return nil
	}
	return l.log.Close()
}

func (e *exporter) releaseLive(l *live) {
	e.mu.Lock()
	l.refs--
	last := l.refs == 0
	e.mu.Unlock()
	if last {
		l.table.Release()
	}
}

// checkpoint records on disk how many spans the logs hold, so that the next start knows how many
// are lost if the disk loses a log.
func (e *exporter) checkpoint() {
	e.mu.Lock()
	weights := make(map[*wal.Log]int64, len(e.frozen)+1)
	for _, l := range append(e.frozen[:len(e.frozen):len(e.frozen)], e.active) {
		if l != nil && l.log != nil {
			weights[l.log] = int64(l.table.Rows())
		}
	}
	e.mu.Unlock()
	if err := e.logs.Checkpoint(weights); err != nil {
		e.log.Debug("cannot record the size of the write-ahead logs; will retry", zap.Error(err))
	}
	if err := e.dir.SaveList(); err != nil {
		e.log.Debug("cannot record the names of the segments; will retry", zap.Error(err))
	}
}
