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
			return fmt.Errorf("spans stay in the log: %w", ctx.Err())
		}
		if err := e.flush(l); err != nil {
			e.metrics.flushFailures.Inc()
			return fmt.Errorf("making a segment of %d spans: %w", l.table.Rows(), err)
		}
	}
}

// flush makes a segment of a frozen memtable, which takes its place in one step; then the log goes.
func (e *exporter) flush(l *live) error {
	began := time.Now()
	if err := l.close(); err != nil {
		// Whoever waits for the log is told. What it could not take is in the segment all the same.
		e.log.Warn("closing the log of a memtable", zap.Error(err))
		l.told.Store(true) // its file is used no more
	}
	e.noteRotations(l)
	h, err := e.write(l)
	if vfs.NoSpace(err) {
		e.makeSpace(err)
		h, err = e.write(l)
	}
	switch {
	case errors.Is(err, segment.ErrTooLarge):
		e.giveUp(l, err)
	case err != nil:
		return err
	case h != nil:
		e.noteUnreadable(l, h.info)
	}
	e.mu.Lock()
	e.frozen = e.frozen[1:]
	if h != nil {
		e.segments = insert(e.segments, h)
	}
	e.leftover = append(e.leftover, oldLog{l.epoch, l.damaged, l.failed || l.told.Load() || l.log == nil})
	e.letWait()
	e.mu.Unlock()
	e.removeLogs()
	e.releaseLive(l)
	if h != nil {
		e.metrics.flushed(h.info, time.Since(began))
		e.log.Debug("segment written", zap.Stringer("segment", h.name), zap.Int("spans", h.info.Rows), zap.Int64("bytes", h.info.Size),
			zap.Int("duplicates", h.info.Duplicates), zap.Duration("took", time.Since(began)))
	}
	return nil
}

// write returns nil for a memtable without spans.
func (e *exporter) write(l *live) (*handle, error) {
	if l.table.Rows() == 0 {
		return nil, nil
	}
	first, last := l.table.Arrivals()
	name := directory.NewSegment(last, 0, l.epoch, l.epoch)
	if err := e.dir.MakeDay(name); err != nil {
		return nil, err
	}
	meta := segment.Meta{FirstEpoch: l.epoch, LastEpoch: l.epoch, FirstArrival: first, LastArrival: last}
	if _, err := segment.Write(e.env.FS, e.dir.Path(name), segment.Input(l.table.Input()), meta, segment.Options{}); err != nil {
		return nil, err
	}
	return e.open(name)
}

// giveUp sets a memtable aside of which no segment can be made, so that the store goes on. No input is known that leads here.
func (e *exporter) giveUp(l *live, cause error) {
	l.damaged = true
	e.metrics.lostSpans.Add(float64(l.table.Rows()))
	e.log.Error("no segment can be made of acknowledged spans; their log is kept in the quarantine: please report this",
		zap.Uint64("epoch", l.epoch), zap.Int("spans", l.table.Rows()), zap.Error(cause))
}

// noteUnreadable keeps the log of spans that should be in a segment and are not. No input is known that leads here.
func (e *exporter) noteUnreadable(l *live, info segment.Info) {
	if info.Unreadable == 0 {
		return
	}
	l.damaged = true
	e.metrics.lostSpans.Add(float64(info.Unreadable))
	e.log.Error("spans in memory could not be read when a segment was made of them; their log is kept in the quarantine: please report this",
		zap.Uint64("epoch", l.epoch), zap.Int("spans", info.Unreadable))
}

// oldLog is a log whose spans are in a segment. As long as it is there the segment must not expire: at the next start the spans would come
// back.
type oldLog struct {
	epoch        uint64
	damaged, bad bool // what becomes of its files: into the quarantine, deleted, or used again
}

// removeLogs removes the logs of memtables that are segments now.
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
			e.log.Warn("removing a log whose spans are in a segment; it will be tried again", zap.Error(err))
		}
		return err == nil
	})
	e.mu.Lock()
	e.leftover = logs
	e.mu.Unlock()
}

// noteRotations tells of failures of the disk that cost nothing, because the log went on in another file.
func (e *exporter) noteRotations(l *live) {
	if l.log == nil {
		return
	}
	if s := l.log.Stats(); s.Rotations > l.noted {
		e.metrics.logRotations.Add(float64(s.Rotations - l.noted))
		l.noted = s.Rotations
		e.log.Warn("writing the log failed and was repeated in another file: the disk needs attention", zap.Uint64("times", s.Rotations),
			zap.Error(s.LastFailure))
	}
}
