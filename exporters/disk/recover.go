package disk

import (
	"errors"
	"fmt"
	"slices"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

// recover brings back the state of the process before: segments as they are, and memtables from logs that are in no segment.
func (e *exporter) recover() error {
	if err := e.openSegments(); err != nil {
		return err
	}
	epochs, err := e.logs.Epochs()
	if err != nil {
		return err
	}
	for _, epoch := range epochs {
		e.lastEpoch = max(e.lastEpoch, epoch)
		if slices.ContainsFunc(e.segments, func(h *handle) bool { return h.has(epoch) }) {
			e.leftover = append(e.leftover, oldLog{epoch, e.dir.Marked(epoch), true})
			continue
		}
		if err := e.replay(epoch); err != nil {
			return err
		}
		if len(e.frozen) <= maxFrozen+1 {
			continue // as many as the process before had, at most: they are read at once, and written later
		}
		if err := e.flush(e.frozen[0]); err != nil {
			e.log.Error("spans from an earlier log stay in memory", zap.Error(err))
		}
	}
	e.removeLogs()
	if len(e.frozen) > 0 {
		e.wake <- struct{}{}
	}
	return nil
}

// openSegments opens all segments that can be read. The others are set aside, except those of a newer version, which are in order.
func (e *exporter) openSegments() error {
	names, err := e.dir.Segments()
	if err != nil {
		return err
	}
	for _, name := range names {
		e.lastEpoch = max(e.lastEpoch, name.Last)
		h, err := e.open(name)
		if damage := (*source.DamageError)(nil); err != nil && !errors.As(err, &damage) {
			return err // of a newer version, or not readable for the moment: too many open files, for example
		}
		if err != nil {
			if err := e.setAside(name, err); err != nil {
				return err
			}
			continue
		}
		e.segments = append(e.segments, h)
	}
	slices.SortFunc(e.segments, byEpoch)
	e.dropReplaced()
	return nil
}

func (e *exporter) setAside(name directory.Segment, cause error) error {
	to, err := e.dir.Quarantine(e.dir.Path(name))
	if err != nil {
		return fmt.Errorf("a segment cannot be read (%w), and: %w", cause, err)
	}
	e.metrics.quarantined.Inc()
	e.log.Error("a segment cannot be read and was set aside; its spans are missing from all answers", zap.String("file", to),
		zap.Int64("bytes", name.Size), zap.Error(cause))
	return nil
}

// dropReplaced removes segments of which others were made: their spans are there twice, because a crash came before they were deleted. What
// lies between them without being named, such as a segment that was set aside at the time and repaired later, stays.
func (e *exporter) dropReplaced() {
	level := map[string]int{} // by name: the greatest of segments made of it
	for _, h := range e.segments {
		for _, name := range h.info.Replaces {
			level[name] = max(level[name], h.name.Level)
		}
	}
	var gone []*handle
	e.mu.Lock()
	e.segments = slices.DeleteFunc(e.segments, func(h *handle) bool {
		if level[h.name.String()] <= h.name.Level {
			return false
		}
		e.doom(h)
		gone = append(gone, h)
		return true
	})
	e.mu.Unlock()
	for _, h := range gone {
		e.releaseHandle(h)
	}
}

// replay rebuilds a memtable from its log.
func (e *exporter) replay(epoch uint64) error {
	l := &live{epoch: epoch, table: e.newTable(), opened: e.env.Now(), refs: 1}
	unreadable := 0
	report, err := e.logs.Replay(epoch, func(_ uint64, payload []byte) error {
		lost, err := l.table.Replay(payload)
		unreadable += lost
		if err != nil {
			unreadable++
			l.damaged = true
			e.log.Error("a record of the log cannot be read", zap.Uint64("epoch", epoch), zap.Error(err))
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading the log: %w", err)
	}
	l.table.Arrived(l.opened) // when they really came is not in the log; they stay a little longer than they need to
	if report.Unsynced > 0 && report.Sound() && wal.Mode(e.config.Sync) == wal.SyncAlways {
		unreadable = 0 // rows behind a record that was never acknowledged were not, either
	}
	if l.damaged = l.damaged || unreadable > 0 || !report.Sound(); l.damaged {
		if err := e.noteDamage(epoch, report, unreadable); err != nil {
			return err
		}
	}
	if l.table.Rows() == 0 && !l.damaged {
		l.table.Release()
		return e.logs.Remove(epoch)
	}
	e.frozen = append(e.frozen, l)
	return nil
}

// noteDamage reports that acknowledged spans of a log are lost, and marks the log, so that its files are kept whatever happens before its
// other spans are in a segment.
func (e *exporter) noteDamage(epoch uint64, report wal.Report, unreadable int) error {
	e.metrics.lostRecords.Add(float64(report.Lost))
	e.metrics.lostSpans.Add(float64(unreadable))
	e.log.Error("the log is damaged: acknowledged spans are lost; its files will be kept in the quarantine",
		zap.Uint64("epoch", epoch), zap.Uint64("requests_lost", report.Lost), zap.Int("spans_unreadable", unreadable),
		zap.Any("damage", report.Damage))
	text := fmt.Sprintf("log %016x: %d acknowledged requests lost, %d spans unreadable\n", epoch, report.Lost, unreadable)
	for _, d := range report.Damage {
		text += fmt.Sprintf("%s: %d bytes at %d\n", d.File, d.Bytes, d.Offset)
	}
	return e.dir.Mark(epoch, text)
}
