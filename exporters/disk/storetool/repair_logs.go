package storetool

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/exporters/disk/internal/segment"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// Actions of a RepairFile for a log.
const (
	salvaged      = "its readable spans were written to a segment; the log stays in the quarantine"
	leftStoredLog = "left in the quarantine: a segment has its readable spans"
	leftEmptyLog  = "left in the quarantine: no span is readable"
	leftActiveLog = "left in the quarantine: the store has a log with the same name"
)

// repairLogs writes the readable spans of logs in the quarantine to segments. The server does so at
// the start before it moves a log there, but the segment may have been lost since, or the log may
// have become readable.
func (r *repairer) repairLogs(ctx context.Context) error {
	logs, _, err := listLogs(r.fs, r.dir.QuarantineDir())
	if err != nil || len(logs) == 0 {
		return err
	}
	dir, err := openLogs(r.fs, r.dir.QuarantineDir())
	if err != nil {
		return err
	}
	for _, files := range logs {
		if err := ctx.Err(); err != nil {
			return err
		}
		l := replayLog(dir, files)
		err := r.repairLog(ctx, l)
		l.release()
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *repairer) repairLog(ctx context.Context, l *replayed) error {
	name := path.Join(r.dir.QuarantineDir(), fmt.Sprintf("%016x", l.epoch))
	f := RepairFile{File: name, Action: leftStoredLog, Damage: []Damage{}}
	switch {
	case l.err != nil:
		f.Action, f.Damage = leftUnreadable, []Damage{{name, "log", 0, l.err.Error()}}
	case l.Damaged():
		f.Damage = []Damage{{name, "log", 0, l.Describe(l.rows)}}
	}
	holder := r.holderOf(l.epoch)
	var err error
	switch {
	case l.err != nil:
	case slices.ContainsFunc(r.snapshot.logs, func(o *replayed) bool { return o.epoch == l.epoch }):
		f.Action = leftActiveLog
	case l.rows == 0:
		f.Action = leftEmptyLog
	case holder == nil:
		err = r.salvage(l, &f)
	case holder.Segment != nil && holder.name.IsSingleEpoch() && l.rows > holder.info.Rows+holder.info.Duplicates:
		err = r.complete(ctx, holder, l, &f)
	}
	r.add(f)
	return err
}

// holderOf returns the segment with the spans of a log, or nil.
func (r *repairer) holderOf(epoch uint64) *stored {
	for _, g := range slices.Concat(r.snapshot.segments, r.back) {
		if g.holds(epoch) {
			return g
		}
	}
	return nil
}

// salvage writes the spans of a log that no segment has. The arrival is taken to be the start of
// the log, so that the spans do not stay longer than the retention allows.
func (r *repairer) salvage(l *replayed, f *RepairFile) error {
	began := time.Unix(0, int64(l.epoch)).UTC()
	name := directory.NewSegment(began, 0, l.epoch, l.epoch)
	f.Action, f.New, f.Spans, f.Lost = salvaged, r.dir.Path(name), l.rows, lostOf(l)
	r.back = append(r.back, &stored{name: name})
	if r.dry {
		return nil
	}
	meta := segment.Meta{FirstEpoch: l.epoch, LastEpoch: l.epoch, FirstArrival: began, LastArrival: began}
	var info segment.Info
	err := r.dir.WithDay(name, func() (err error) {
		info, err = segment.Write(r.fs, r.dir.Path(name), segment.Input(l.table.Input()), meta, segment.Options{})
		return err
	})
	f.Spans = info.Rows
	if err == nil {
		r.dir.Enlist(name, info.Rows)
	}
	return err
}

func lostOf(l *replayed) int {
	n, _ := l.Lost(l.rows)
	return n
}

// complete merges a log with the segment that was written when less of the log was readable. It
// leaves the segment as it is if the log has no further spans.
func (r *repairer) complete(ctx context.Context, g *stored, l *replayed, f *RepairFile) error {
	name := directory.Segment{Day: g.name.Day, Level: g.name.Level + 1, First: g.name.First, Last: g.name.Last}
	if r.dry {
		f.Action, f.New, f.Spans = salvaged, "a new segment", l.rows
		return nil
	}
	meta := g.info.Meta
	meta.Level, meta.Replaces = name.Level, append([]string{g.name.String()}, meta.Replaces...)
	inputs := []source.Source{r.snapshot.filtered(g, g.info.FirstEpoch, g.info.LastTombstone),
		r.snapshot.filtered(l.table.Source(), l.epoch, 0)}
	info, err := segment.Merge(r.fs, r.dir.StagingPath(name), inputs, meta, segment.MergeOptions{
		Pace:     ctx.Err,
		OnDamage: func(*source.DamageError) error { return nil },
	})
	if err != nil || info.Rows <= g.info.Rows {
		return errors.Join(err, r.dir.Discard(name))
	}
	f.Action, f.New, f.Spans, f.Lost = salvaged, r.dir.Path(name), info.Rows, lostOf(l)
	return r.publish(name, info.Rows)
}
