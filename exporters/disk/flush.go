package disk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/pipeline/vfs"
)

// tick is how often the keeper looks after age, retention and space.
const tick = time.Second

// keep is the keeper: it flushes frozen memtables as they come, and once a second looks after everything else.
func (e *exporter) keep() {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-e.stop:
			return
		case <-e.wake:
			e.tend(false)
		case <-ticker.C:
			e.tend(true)
		}
	}
}

// tend does what is due.
func (e *exporter) tend(all bool) {
	if all {
		e.freezeOld()
	}
	err := e.flushAll(context.Background())
	e.mu.Lock()
	e.stuck = err
	e.mu.Unlock()
	if all || err != nil {
		e.expire()
		err = errors.Join(err, e.checkSpace())
	}
	e.tell(err)
	e.show()
}

// tell reports a trouble once, and its end.
func (e *exporter) tell(err error) {
	if (err == nil) == (e.trouble == nil) {
		return
	}
	e.trouble = err
	e.report(err)
	if err != nil {
		e.log.Error("the span store has trouble", zap.Error(err))
		return
	}
	e.log.Info("the span store is well again")
}

// freezeOld freezes the active memtable when its time has come, or when its log takes no more.
func (e *exporter) freezeOld() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l := e.active; l != nil && len(e.frozen) < maxFrozen {
		if old := e.env.Now().Sub(l.opened) >= time.Duration(e.config.Memtable.MaxAge); l.failed || old && l.table.Rows() > 0 {
			e.freeze()
		}
	}
}

// flushAll flushes frozen memtables, oldest first, until one fails.
func (e *exporter) flushAll(ctx context.Context) error {
	for ctx.Err() == nil {
		e.mu.Lock()
		var l *live
		if len(e.frozen) > 0 {
			l = e.frozen[0]
		}
		e.mu.Unlock()
		if l == nil {
			return nil
		}
		err := e.flush(l)
		if vfs.NoSpace(err) {
			e.makeSpace(err)
			err = e.flush(l)
		}
		if err != nil {
			e.metrics.flushFailures.Inc()
			return fmt.Errorf("making a segment of %d spans: %w", l.table.Rows(), err)
		}
	}
	return fmt.Errorf("spans stay in the log: %w", ctx.Err())
}

// flush makes a segment of a frozen memtable, which takes its place in one step; then the log goes.
func (e *exporter) flush(l *live) error {
	began := time.Now()
	if err := l.close(); err != nil {
		// Whoever waits for the log is told. What it could not take is in the segment all the same.
		e.log.Warn("closing the log of a memtable", zap.Error(err))
	}
	e.noteRotations(l)
	var h *handle
	if l.table.Rows() > 0 {
		var err error
		if h, err = e.write(l); err != nil {
			return err
		}
	}
	e.mu.Lock()
	e.frozen = e.frozen[1:]
	if h != nil {
		e.segments = append(e.segments, h)
	}
	e.letWait()
	e.mu.Unlock()
	e.removeLog(l)
	e.releaseLive(l)
	if h != nil {
		e.metrics.flushed(h.info, time.Since(began))
		e.log.Debug("segment written", zap.Stringer("segment", h.name), zap.Int("spans", h.info.Rows), zap.Int64("bytes", h.info.Size),
			zap.Int("duplicates", h.info.Duplicates), zap.Duration("took", time.Since(began)))
	}
	return nil
}

func (e *exporter) write(l *live) (*handle, error) {
	first, last := l.table.Arrivals()
	name := directory.NewSegment(last, 0, l.epoch, l.epoch)
	if err := e.dir.MakeDay(name); err != nil {
		return nil, err
	}
	meta := segment.Meta{FirstEpoch: l.epoch, LastEpoch: l.epoch, FirstArrival: first, LastArrival: last}
	info, err := segment.Write(e.env.FS, e.dir.Path(name), segment.Input(l.table.Input()), meta, segment.Options{})
	if err != nil {
		return nil, err
	}
	s, err := segment.Open(e.env.FS, e.dir.Path(name))
	if err != nil {
		return nil, err
	}
	name.Size = info.Size
	return &handle{name: name, info: info, segment: s, refs: 1}, nil
}

// removeLog removes the log of a memtable whose segment is committed. That a segment of its epoch exists is what makes it superfluous, so
// a failure costs space until the next start and nothing else.
func (e *exporter) removeLog(l *live) {
	var err error
	switch {
	case l.damaged:
		err = e.logs.Quarantine(l.epoch, e.dir.QuarantineDir())
	case l.failed || l.log == nil:
		err = e.logs.Remove(l.epoch)
	default:
		err = e.logs.Recycle(l.epoch)
	}
	if err != nil {
		e.log.Warn("removing a log that is in a segment now", zap.Error(err))
	}
}

// noteRotations tells of failures of the disk that cost nothing, because the log went on in another file.
func (e *exporter) noteRotations(l *live) {
	if l.log == nil {
		return
	}
	if s := l.log.Stats(); s.Rotations > 0 {
		e.metrics.logRotations.Add(float64(s.Rotations))
		e.log.Warn("writing the log failed and was repeated in another file: the disk needs attention", zap.Uint64("times", s.Rotations),
			zap.Error(s.LastFailure))
	}
}
