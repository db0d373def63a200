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

// recovery restores the data of the previous process, and flushes some of it. Start uses it before
// anything else runs.
type recovery struct{ *flusher }

// recover restores the state of the previous process: all segments, and memtables from logs whose
// spans are in no segment.
func (r recovery) recover() error {
	missing, listDamage := r.dir.Missing() // before a segment is removed
	if listDamage != nil && !errors.Is(listDamage, directory.ErrListDamaged) {
		return listDamage // a temporary error such as too many open files
	}
	if err := r.openSegments(); err != nil {
		return err
	}
	epochs, err := r.logs.Epochs()
	if err != nil {
		return err
	}
	missing = slices.DeleteFunc(missing, func(m directory.Missing) bool {
		return m.IsSingleEpoch() && slices.Contains(epochs, m.First) // its log was not removed yet
	})
	if err := r.noteMissingSegments(missing, listDamage); err != nil {
		return err
	}
	if err := r.findMissingLogs(); err != nil { // before a log is removed
		return err
	}
	for _, epoch := range epochs {
		r.intake.noteEpoch(epoch)
		if r.holds(epoch) {
			r.segments.add(nil, oldLog{epoch, r.dir.IsMarkedDamaged(epoch), true})
			continue
		}
		if err := r.replay(epoch); err != nil {
			return err
		}
		if len(r.intake.frozen) <= maxFrozen+1 {
			continue // at most as many as the previous process had: flush them later, in the background
		}
		if err := r.flush(r.intake.frozen[0]); err != nil {
			r.log.Error("cannot flush recovered write-ahead log; its spans stay in memory", zap.Error(err))
		}
	}
	r.segments.removeLogs()
	if len(r.intake.frozen) > 0 {
		r.intake.wake <- struct{}{}
	}
	return nil
}

// openSegments opens all segments. Damaged ones are moved to the quarantine; one of a newer version
// is an error.
func (r recovery) openSegments() error {
	names, err := r.dir.Segments()
	if err != nil {
		return err
	}
	for _, name := range names {
		r.intake.noteEpoch(name.Last)
		h, err := r.segments.open(name)
		if damage := (*source.DamageError)(nil); err != nil && !errors.As(err, &damage) {
			return err // a newer version, or a temporary error such as too many open files
		}
		if err != nil {
			if err := r.setAside(name, err); err != nil {
				return err
			}
			continue
		}
		r.segments.list = append(r.segments.list, h)
	}
	slices.SortFunc(r.segments.list, byEpoch)
	r.segments.dropReplaced()
	// A deletion also applies to segments that are restored later.
	return r.quarantinedSegments(func(s directory.Segment) { r.intake.noteEpoch(s.Last) })
}

func (r recovery) setAside(name directory.Segment, cause error) error {
	to, err := r.dir.Quarantine(r.dir.Path(name))
	if err != nil {
		return fmt.Errorf("segment cannot be read (%w) and cannot be moved to quarantine: %w", cause, err)
	}
	r.metrics.quarantined.Inc()
	r.log.Error("segment cannot be read; moved to quarantine; its spans are missing from query results", zap.String("file", to),
		zap.Int64("bytes", name.Size), zap.Error(cause))
	return nil
}

// noteMissingSegments reports segments whose files are gone although no other segment has their
// spans, and updates the list of segments.
func (r recovery) noteMissingSegments(missing []directory.Missing, listDamage error) error {
	if listDamage != nil {
		r.log.Error("list of segments is damaged; cannot tell whether segments are missing; it will be rewritten", zap.Error(listDamage))
	}
	for _, m := range missing {
		r.intake.noteEpoch(m.Last)
		if r.holds(m.First) && r.holds(m.Last) || r.wouldHaveExpired(m.Last) {
			continue
		}
		r.metrics.lostSpans.Add(float64(m.Spans))
		from, to := time.Unix(0, int64(m.First)).UTC(), time.Unix(0, int64(m.Last)).UTC()
		r.log.Error("segment file is missing; its acknowledged spans are lost", zap.String("file", r.dir.Path(m.Segment)),
			zap.Int("spans", m.Spans), zap.Time("first_log_began", from), zap.Time("last_log_began", to))
		text := fmt.Sprintf("segment %s is missing: it held %d spans from logs that began from %s to %s\n", m.Segment, m.Spans,
			from.Format(time.RFC3339), to.Format(time.RFC3339))
		if err := r.recordDamage(func() error { return r.dir.MarkMissing(m.Segment, text) }); err != nil {
			return err
		}
	}
	spans := make(map[string]int, len(r.segments.list))
	for _, h := range r.segments.list {
		spans[h.name.String()] = h.info.Rows
	}
	r.dir.SetList(spans)
	return nil
}

// holds reports whether a readable segment has the spans of a log.
func (r recovery) holds(epoch uint64) bool {
	return slices.ContainsFunc(r.segments.list, func(h *handle) bool { return h.has(epoch) })
}

// replay rebuilds a memtable from its log.
func (r recovery) replay(epoch uint64) error {
	table, found, err := memtable.ReplayLog(r.logs, epoch, r.intake.newTable)
	if err != nil {
		return fmt.Errorf("reading the write-ahead log: %w", err)
	}
	l := &live{epoch: epoch, table: table, opened: r.env.Now(), refs: 1}
	l.table.Arrived(l.opened) // the log has no arrival times: the spans stay a little longer
	if found.Unacknowledged() && wal.Mode(r.config.Sync) == wal.SyncAlways {
		r.log.Warn("write-ahead log ends with records that cannot be read; they were not acknowledged, unless the disk has damaged them",
			zap.Uint64("epoch", epoch), zap.Uint64("records", found.Report.Unsynced))
	} else if found.Damaged() {
		l.damaged = true
		if err := r.noteDamage(epoch, &found, l.table.Rows()); err != nil {
			return err
		}
	}
	if l.table.Rows() == 0 && !l.damaged {
		l.table.Release()
		return r.logs.Remove(epoch)
	}
	r.intake.frozen = append(r.intake.frozen, l)
	return nil
}

// findMissingLogs reports logs whose files are gone although no segment has their spans.
func (r recovery) findMissingLogs() error {
	missing, err := r.logs.Missing()
	if err != nil && !errors.Is(err, wal.ErrListDamaged) {
		return err
	}
	if err != nil {
		r.log.Error("list of write-ahead logs is damaged; cannot tell whether logs are missing; it will be rewritten", zap.Error(err))
		return nil
	}
	for _, m := range missing {
		r.intake.noteEpoch(m.Epoch)
		if r.holds(m.Epoch) || r.dir.IsMarkedDamaged(m.Epoch) {
			continue
		}
		r.metrics.lostRecords.Add(float64(max(m.Records, 1))) // 0 if it is younger than the last checkpoint
		r.metrics.lostSpans.Add(float64(m.Weight))
		began := time.Unix(0, int64(m.Epoch)).UTC()
		r.log.Error("write-ahead log is missing; its acknowledged spans are lost", zap.Uint64("epoch", m.Epoch),
			zap.Time("began", began), zap.Uint64("records_lost_at_least", m.Records), zap.Int64("spans_lost_at_least", m.Weight))
		text := fmt.Sprintf("log %016x is missing: it began at %s and held at least %d spans\n", m.Epoch, began.Format(time.RFC3339), m.Weight)
		if err := r.recordDamage(func() error { return r.dir.MarkDamaged(m.Epoch, text) }); err != nil {
			return err
		}
	}
	return nil
}

// noteDamage reports that acknowledged spans of a log are lost, and marks the log on disk, so that
// its files are kept even if the process dies before the rest of its spans is flushed.
func (r recovery) noteDamage(epoch uint64, found *memtable.Recovery, rows int) error {
	report := &found.Report
	lost, atLeast := found.Lost(rows)
	message := "write-ahead log is damaged; no spans are lost; its files will be kept in quarantine"
	if lost == 0 && report.Doubtful {
		message = "write-ahead log is damaged; acknowledged spans may be lost; its files will be kept in quarantine"
		r.metrics.lostRecords.Inc()
	} else if lost > 0 || atLeast {
		message = "write-ahead log is damaged; acknowledged spans are lost; its files will be kept in quarantine"
		r.metrics.lostRecords.Add(float64(max(report.Lost, 1))) // the number may be unknown
		r.metrics.lostSpans.Add(float64(lost))
	}
	r.log.Error(message, zap.Uint64("epoch", epoch), zap.Int("spans_lost", lost), zap.Bool("more_may_be_lost", atLeast),
		zap.Uint64("records_lost", report.Lost), zap.Int("spans_without_definitions", found.Unreadable), zap.Int("spans_recovered", rows),
		zap.Bool("end_is_missing", report.Truncated), zap.Any("damage", report.Damage), zap.NamedError("invalid_record", found.Invalid))
	text := fmt.Sprintf("log %016x: %s\n", epoch, found.Describe(rows))
	for _, d := range report.Damage {
		text += fmt.Sprintf("%s: %d bytes at %d\n", d.File, d.Bytes, d.Offset)
	}
	return r.recordDamage(func() error { return r.dir.MarkDamaged(epoch, text) })
}

// recordDamage calls mark. If the disk is full, it deletes the reserve first, so that damage does
// not stop the start.
func (r recovery) recordDamage(mark func() error) error {
	err := mark()
	if vfs.NoSpace(err) {
		r.retention.makeSpace("record damage", err)
		err = mark()
	}
	return err
}
