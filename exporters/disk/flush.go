package disk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// flusher turns frozen memtables into segments.
type flusher struct {
	*common
	intake    *intake
	segments  *segments
	retention *retention
	retry     backoff // used by the maintenance loop
}

// run flushes frozen memtables, unless a failed flush is waiting for its retry.
func (f *flusher) run() {
	if f.retry.due() {
		err := f.flushAll(context.Background())
		f.retry.note(err)
		f.intake.note(&f.intake.stuck, err)
	}
}

// flushAll flushes frozen memtables, oldest first, until one fails.
func (f *flusher) flushAll(ctx context.Context) error {
	for {
		f.intake.mu.Lock()
		var l *live
		if len(f.intake.frozen) > 0 {
			l = f.intake.frozen[0]
		}
		f.intake.mu.Unlock()
		if l == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("flush canceled; spans remain in the write-ahead log: %w", ctx.Err())
		}
		if err := f.flush(l); err != nil {
			f.metrics.flushFailures.Inc()
			return fmt.Errorf("flushing %d spans: %w", l.table.Rows(), err)
		}
	}
}

// flush turns a frozen memtable into a segment, which replaces it in one step, and then removes its
// log.
func (f *flusher) flush(l *live) error {
	began := time.Now()
	if err := l.close(); err != nil {
		// Callers that wait for the log get the error. The spans that the log could not take are in
		// the segment nevertheless.
		f.lines.Warn("cannot close write-ahead log of a flushed memtable", zap.Error(err))
		l.reported.Store(true) // its file is not reused
	}
	f.noteRotations(l)
	h, err := f.write(l)
	if vfs.NoSpace(err) {
		f.retention.makeSpace("flush a memtable", err)
		h, err = f.write(l)
	}
	switch {
	case errors.Is(err, segment.ErrTooLarge):
		f.giveUp(l, err)
	case err != nil:
		return err
	case h != nil:
		f.noteUnreadable(l, h.info)
		f.metrics.flushed(h.info, time.Since(began))
		f.log.Debug("flushed memtable", zap.Stringer("segment", h.name), zap.Int("spans", h.info.Rows), zap.Int64("bytes", h.info.Size),
			zap.Int("duplicates", h.info.Duplicates), zap.Duration("took", time.Since(began)))
	}
	f.intake.mu.Lock()
	f.intake.frozen = f.intake.frozen[1:]
	f.segments.add(h, oldLog{l.epoch, l.damaged, l.failed || l.reported.Load() || l.log == nil})
	f.intake.signalCapacity()
	f.intake.mu.Unlock()
	f.segments.removeLogs()
	f.intake.release(l)
	return nil
}

// write returns nil for a memtable without spans.
func (f *flusher) write(l *live) (*handle, error) {
	if l.table.Rows() == 0 {
		return nil, nil
	}
	first, last := l.table.Arrivals()
	name := directory.NewSegment(last, 0, l.epoch, l.epoch)
	meta := segment.Meta{FirstEpoch: l.epoch, LastEpoch: l.epoch, FirstArrival: first, LastArrival: last}
	err := f.dir.WithDay(name, func() error {
		_, err := segment.Write(f.dir.FS(), f.dir.Path(name), segment.Input(l.table.Input()), meta, segment.Options{})
		return err
	})
	if err != nil {
		return nil, err
	}
	h, err := f.segments.open(name)
	if err == nil {
		f.dir.Enlist(name, h.info.Rows)
	}
	return h, err
}

// giveUp drops a memtable that cannot be turned into a segment, so that the store continues. No
// input is known that leads here.
func (f *flusher) giveUp(l *live, cause error) {
	l.damaged = true
	f.metrics.lostSpans.Add(float64(l.table.Rows()))
	f.log.Error("cannot flush acknowledged spans; keeping their write-ahead log in quarantine; please report this bug",
		zap.Uint64("epoch", l.epoch), zap.Int("spans", l.table.Rows()), zap.Error(cause))
}

// noteUnreadable keeps the log of spans that are missing from a new segment. No input is known that
// leads here.
func (f *flusher) noteUnreadable(l *live, info segment.Info) {
	if info.Unreadable == 0 {
		return
	}
	l.damaged = true
	f.metrics.lostSpans.Add(float64(info.Unreadable))
	f.log.Error("cannot read some spans in memory for a flush; keeping their write-ahead log in quarantine; please report this bug",
		zap.Uint64("epoch", l.epoch), zap.Int("spans", info.Unreadable))
}

// noteRotations reports failed writes of the log that lost nothing, because the log continued in
// another file.
func (f *flusher) noteRotations(l *live) {
	if l.log == nil {
		return
	}
	if s := l.log.Stats(); s.Rotations > l.rotations {
		f.metrics.logRotations.Add(float64(s.Rotations - l.rotations))
		l.rotations = s.Rotations
		f.log.Warn("cannot write to a write-ahead log file; wrote the data to a new file; check the disk", zap.Uint64("times", s.Rotations),
			zap.Error(s.LastFailure))
	}
}
