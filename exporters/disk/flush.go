package disk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// flushAll flushes frozen memtables, oldest first, until one fails.
func (e *exporter) flushAll(ctx context.Context) error {
	for {
		e.mu.Lock()
		var l *live
		if len(e.frozen) > 0 {
			l = e.frozen[0]
		}
		e.mu.Unlock()
		if l == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("flush cancelled; spans remain in the write-ahead log: %w", ctx.Err())
		}
		if err := e.flush(l); err != nil {
			e.metrics.flushFailures.Inc()
			return fmt.Errorf("flushing %d spans: %w", l.table.Rows(), err)
		}
	}
}

// flush turns a frozen memtable into a segment, which replaces it in one step, and then removes its
// log.
func (e *exporter) flush(l *live) error {
	began := time.Now()
	if err := l.close(); err != nil {
		// Callers that wait for the log get the error. Spans that it could not take are in the
		// segment nevertheless.
		e.lines.Warn("cannot close write-ahead log of a flushed memtable", zap.Error(err))
		l.reported.Store(true) // its file is not reused
	}
	e.noteRotations(l)
	h, err := e.write(l)
	if vfs.NoSpace(err) {
		e.makeSpace("flush a memtable", err)
		h, err = e.write(l)
	}
	switch {
	case errors.Is(err, segment.ErrTooLarge):
		e.giveUp(l, err)
	case err != nil:
		return err
	case h != nil:
		e.noteUnreadable(l, h.info)
		e.metrics.flushed(h.info, time.Since(began))
		e.log.Debug("flushed memtable", zap.Stringer("segment", h.name), zap.Int("spans", h.info.Rows), zap.Int64("bytes", h.info.Size),
			zap.Int("duplicates", h.info.Duplicates), zap.Duration("took", time.Since(began)))
	}
	e.mu.Lock()
	e.frozen = e.frozen[1:]
	if h != nil {
		e.segments = insert(e.segments, h)
	}
	e.leftover = append(e.leftover, oldLog{l.epoch, l.damaged, l.failed || l.reported.Load() || l.log == nil})
	e.signalCapacity()
	e.mu.Unlock()
	e.removeLogs()
	e.releaseLive(l)
	return nil
}

// write returns nil for a memtable without spans.
func (e *exporter) write(l *live) (*handle, error) {
	if l.table.Rows() == 0 {
		return nil, nil
	}
	first, last := l.table.Arrivals()
	name := directory.NewSegment(last, 0, l.epoch, l.epoch)
	meta := segment.Meta{FirstEpoch: l.epoch, LastEpoch: l.epoch, FirstArrival: first, LastArrival: last}
	err := e.dir.WithDay(name, func() error {
		_, err := segment.Write(e.dir.FS(), e.dir.Path(name), segment.Input(l.table.Input()), meta, segment.Options{})
		return err
	})
	if err != nil {
		return nil, err
	}
	h, err := e.open(name)
	if err == nil {
		e.dir.Enlist(name, h.info.Rows)
	}
	return h, err
}

// giveUp drops a memtable that cannot be turned into a segment, so that the store goes on. No input
// is known that leads here.
func (e *exporter) giveUp(l *live, cause error) {
	l.damaged = true
	e.metrics.lostSpans.Add(float64(l.table.Rows()))
	e.log.Error("cannot flush acknowledged spans; keeping their write-ahead log in quarantine; please report this bug",
		zap.Uint64("epoch", l.epoch), zap.Int("spans", l.table.Rows()), zap.Error(cause))
}

// noteUnreadable keeps the log of spans that are missing from a new segment. No input is known that
// leads here.
func (e *exporter) noteUnreadable(l *live, info segment.Info) {
	if info.Unreadable == 0 {
		return
	}
	l.damaged = true
	e.metrics.lostSpans.Add(float64(info.Unreadable))
	e.log.Error("cannot read some spans in memory for a flush; keeping their write-ahead log in quarantine; please report this bug",
		zap.Uint64("epoch", l.epoch), zap.Int("spans", info.Unreadable))
}

// oldLog is a log whose spans are in a segment. The segment must not expire before the log is
// removed: the next start would bring the spans back.
type oldLog struct {
	epoch        uint64
	damaged, bad bool // damaged: move to quarantine; bad: delete; neither: reuse the file
}

// removeLogs removes the logs of flushed memtables.
func (e *exporter) removeLogs() {
	e.mu.Lock()
	logs := slices.Clone(e.leftover)
	e.mu.Unlock()
	logs = slices.DeleteFunc(logs, func(l oldLog) bool {
		var err error
		switch {
		case l.damaged:
			err = e.logs.Quarantine(l.epoch, e.dir.QuarantineDir())
		case l.bad:
			err = e.logs.Remove(l.epoch)
		default:
			err = e.logs.Recycle(l.epoch)
		}
		if err != nil {
			e.log.Warn("cannot remove write-ahead log of flushed spans; will retry", zap.Error(err))
		}
		return err == nil
	})
	e.mu.Lock()
	e.leftover = logs
	e.mu.Unlock()
}

// noteRotations reports failed writes of the log that lost nothing, because the log continued in
// another file.
func (e *exporter) noteRotations(l *live) {
	if l.log == nil {
		return
	}
	if s := l.log.Stats(); s.Rotations > l.rotations {
		e.metrics.logRotations.Add(float64(s.Rotations - l.rotations))
		l.rotations = s.Rotations
		e.log.Warn("cannot write to a write-ahead log file; wrote the data to a new file; check the disk", zap.Uint64("times", s.Rotations),
			zap.Error(s.LastFailure))
	}
}
