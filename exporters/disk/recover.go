package disk

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/exporters/disk/internal/memtable"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

// recover restores the state of the previous process: segments as they are, and memtables from logs
// that are in no segment.
func (e *exporter) recover() error {
	missing, listDamage := e.dir.Missing() // before a segment is removed
	if listDamage != nil && !errors.Is(listDamage, directory.ErrListDamaged) {
		return listDamage // a temporary error such as too many open files
	}
	if err := e.openSegments(); err != nil {
		return err
	}
	epochs, err := e.logs.Epochs()
	if err != nil {
		return err
	}
	missing = slices.DeleteFunc(missing, func(m directory.Missing) bool {
		return m.IsSingleEpoch() && slices.Contains(epochs, m.First) // its log was not removed yet
	})
	if err := e.noteMissingSegments(missing, listDamage); err != nil {
		return err
	}
	if err := e.findMissingLogs(); err != nil { // before a log is removed
		return err
	}
	for _, epoch := range epochs {
		e.lastEpoch = max(e.lastEpoch, epoch)
		if slices.ContainsFunc(e.segments, func(h *handle) bool { return h.has(epoch) }) {
			e.leftover = append(e.leftover, oldLog{epoch, e.dir.IsMarkedDamaged(epoch), true})
			continue
		}
		if err := e.replay(epoch); err != nil {
			return err
		}
		if len(e.frozen) <= maxFrozen+1 {
			continue // at most as many as the previous process had: flush them later, in the background
		}
		if err := e.flush(e.frozen[0]); err != nil {
			e.log.Error("cannot flush recovered write-ahead log; its spans stay in memory", zap.Error(err))
		}
	}
	e.removeLogs()
	if len(e.frozen) > 0 {
		e.wake <- struct{}{}
	}
	return nil
}

// openSegments opens all segments. Damaged ones are moved to the quarantine; one of a newer version
// is an error.
func (e *exporter) openSegments() error {
	names, err := e.dir.Segments()
	if err != nil {
		return err
	}
	for _, name := range names {
		e.lastEpoch = max(e.lastEpoch, name.Last)
		h, err := e.open(name)
		if damage := (*source.DamageError)(nil); err != nil && !errors.As(err, &damage) {
			return err // a newer version, or a temporary error such as too many open files
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
	// A deletion also applies to segments that are restored later.
	return e.quarantinedSegments(func(s directory.Segment) { e.lastEpoch = max(e.lastEpoch, s.Last) })
}

func (e *exporter) setAside(name directory.Segment, cause error) error {
	to, err := e.dir.Quarantine(e.dir.Path(name))
	if err != nil {
		return fmt.Errorf("segment cannot be read (%w) and cannot be moved to quarantine: %w", cause, err)
	}
	e.metrics.quarantined.Inc()
	e.log.Error("segment cannot be read; moved to quarantine; its spans are missing from query results", zap.String("file", to),
		zap.Int64("bytes", name.Size), zap.Error(cause))
	return nil
}

// dropReplaced removes segments whose spans are also in a merged segment, because a crash came
// before they were deleted. Segments in the same range of epochs that the merged segment does not
// name stay, for example one that was in the quarantine at the time and was repaired later.
func (e *exporter) dropReplaced() {
	level := map[string]int{} // by name: the highest level of a segment merged from it
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

// noteMissingSegments reports the segments whose files are gone although no segment has their
// spans, and makes the list of segments name those that the store has.
func (e *exporter) noteMissingSegments(missing []directory.Missing, listDamage error) error {
	if listDamage != nil {
		e.log.Error("list of segments is damaged; cannot tell whether segments are missing; it will be written again", zap.Error(listDamage))
	}
	for _, m := range missing {
		e.lastEpoch = max(e.lastEpoch, m.Last)
		if e.holdsSpans(m.Segment) || e.wouldHaveExpired(m.Last) {
			continue
		}
		e.metrics.lostSpans.Add(float64(m.Spans))
		from, to := time.Unix(0, int64(m.First)).UTC(), time.Unix(0, int64(m.Last)).UTC()
		e.log.Error("segment file is missing; its acknowledged spans are lost", zap.String("file", e.dir.Path(m.Segment)),
			zap.Int("spans", m.Spans), zap.Time("first_log_began", from), zap.Time("last_log_began", to))
		text := fmt.Sprintf("segment %s is missing: it held %d spans from logs that began from %s to %s\n", m.Segment, m.Spans,
			from.Format(time.RFC3339), to.Format(time.RFC3339))
		if err := e.recordDamage(func() error { return e.dir.MarkMissing(m.Segment, text) }); err != nil {
			return err
		}
	}
	spans := make(map[string]int, len(e.segments))
	for _, h := range e.segments {
		spans[h.name.String()] = h.info.Rows
	}
	e.dir.SetList(spans)
	return nil
}

// holdsSpans reports whether readable segments have the first and the last log of a segment: they
// were merged from it, perhaps by an early program, which did not write the list.
func (e *exporter) holdsSpans(s directory.Segment) bool {
	has := func(epoch uint64) bool {
		return slices.ContainsFunc(e.segments, func(h *handle) bool { return h.has(epoch) })
	}
	return has(s.First) && has(s.Last)
}

// replay rebuilds a memtable from its log.
func (e *exporter) replay(epoch uint64) error {
	table, found, err := memtable.ReplayLog(e.logs, epoch, e.newTable)
	if err != nil {
		return fmt.Errorf("reading the write-ahead log: %w", err)
	}
	l := &live{epoch: epoch, table: table, opened: e.env.Now(), refs: 1}
	l.table.Arrived(l.opened) // the log has no arrival times: the spans stay a little longer
	if found.Unacknowledged() && wal.Mode(e.config.Sync) == wal.SyncAlways {
		e.log.Warn("write-ahead log ends with records that cannot be read; they were not acknowledged, unless the disk has damaged them",
			zap.Uint64("epoch", epoch), zap.Uint64("records", found.Report.Unsynced))
	} else if found.Damaged() {
		l.damaged = true
		if err := e.noteDamage(epoch, &found, l.table.Rows()); err != nil {
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

// findMissingLogs reports the logs whose files are gone although no segment has their spans.
func (e *exporter) findMissingLogs() error {
	missing, err := e.logs.Missing()
	if err != nil && !errors.Is(err, wal.ErrListDamaged) {
		return err
	}
	if err != nil {
		e.log.Error("list of write-ahead logs is damaged; cannot tell whether logs are missing; it will be written again", zap.Error(err))
		return nil
	}
	for _, m := range missing {
		e.lastEpoch = max(e.lastEpoch, m.Epoch)
		if slices.ContainsFunc(e.segments, func(h *handle) bool { return h.has(m.Epoch) }) || e.dir.IsMarkedDamaged(m.Epoch) {
			continue
		}
		e.metrics.lostRecords.Add(float64(max(m.Records, 1))) // 0 if it is younger than the last checkpoint
		e.metrics.lostSpans.Add(float64(m.Weight))
		began := time.Unix(0, int64(m.Epoch)).UTC()
		e.log.Error("write-ahead log is missing; its acknowledged spans are lost", zap.Uint64("epoch", m.Epoch),
			zap.Time("began", began), zap.Uint64("records_lost_at_least", m.Records), zap.Int64("spans_lost_at_least", m.Weight))
		text := fmt.Sprintf("log %016x is missing: it began at %s and held at least %d spans\n", m.Epoch, began.Format(time.RFC3339), m.Weight)
		if err := e.recordDamage(func() error { return e.dir.MarkDamaged(m.Epoch, text) }); err != nil {
			return err
		}
	}
	return nil
}

// noteDamage reports that acknowledged spans of a log are lost, and marks the log on disk, so that
// its files are kept even if the process dies before the rest of its spans is flushed.
func (e *exporter) noteDamage(epoch uint64, found *memtable.Recovery, rows int) error {
	report := &found.Report
	lost, atLeast := found.Lost(rows)
	message := "write-ahead log is damaged; no spans are lost; its files will be kept in quarantine"
	if lost == 0 && report.Doubtful {
		message = "write-ahead log is damaged; acknowledged spans may be lost; its files will be kept in quarantine"
		e.metrics.lostRecords.Inc()
	} else if lost > 0 || atLeast {
		message = "write-ahead log is damaged; acknowledged spans are lost; its files will be kept in quarantine"
		e.metrics.lostRecords.Add(float64(max(report.Lost, 1))) // the number may be unknown
		e.metrics.lostSpans.Add(float64(lost))
	}
	e.log.Error(message, zap.Uint64("epoch", epoch), zap.Int("spans_lost", lost), zap.Bool("more_may_be_lost", atLeast),
		zap.Uint64("records_lost", report.Lost), zap.Int("spans_without_definitions", found.Unreadable), zap.Int("spans_recovered", rows),
		zap.Bool("end_is_missing", report.Truncated), zap.Any("damage", report.Damage), zap.NamedError("invalid_record", found.Invalid))
	text := fmt.Sprintf("log %016x: %s\n", epoch, found.Describe(rows))
	for _, d := range report.Damage {
		text += fmt.Sprintf("%s: %d bytes at %d\n", d.File, d.Bytes, d.Offset)
	}
	return e.recordDamage(func() error { return e.dir.MarkDamaged(epoch, text) })
}

// recordDamage calls mark. If the disk is full, it deletes the reserve first, so that damage does
// not stop the start.
func (e *exporter) recordDamage(mark func() error) error {
	err := mark()
	if vfs.NoSpace(err) {
		e.makeSpace("record damage", err)
		err = mark()
	}
	return err
}
