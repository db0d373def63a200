package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/tombstone"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// Limits on tombstones that are still needed. Above them, Delete is refused as overloaded until
// merges have applied some.
const (
	maxTombstones      = 10_000
	maxTombstoneTraces = 500_000 // in all tombstones; each takes about 50 bytes of memory
)

// deletionDir is the folder of the tombstones.
const deletionDir = "deletions"

// deletions holds the active tombstones.
type deletions struct {
	files tombstone.Dir
	// parked holds, in the quarantine, the tombstones that only quarantined segments need. They do
	// not count as active. The next start activates them, in case such a segment was restored.
	parked tombstone.Dir
	slot   chan struct{} // holds a token while a Delete or the maintenance of deletions runs
	given  uint64        // the last assigned number; guarded by slot
	// unsure is an active rule whose tombstone could not be written; its file may or may not exist.
	// Guarded by slot.
	unsure *tombstone.Rule

	// Guarded by exporter.mu.
	rules []*tombstone.Rule // by number; the slice is replaced or appended to, never changed in place
	last  uint64            // number of the last active tombstone
}

// filterState is the deletion filter of a memtable or a segment. Guarded by exporter.mu.
type filterState struct {
	upTo     uint64            // number of the last tombstone that was considered
	filter   *tombstone.Filter // nil: nothing is hidden
	previous *tombstone.Filter // the previous filter, restored if the new rules hide nothing
}

// visible returns the spans of src that are not deleted: src itself if none are. The result stays
// the same until a deletion hits src. The caller holds mu.
func (d *deletions) visible(h *filterState, src source.Source, firstEpoch, applied uint64) source.Source {
	if h.filter != nil && h.filter != h.previous {
		h.settle()
	}
	if h.upTo < d.last {
		var fresh []*tombstone.Rule
		for _, r := range d.rules[d.after(max(h.upTo, applied)):] {
			if r.Applies(firstEpoch, applied) && r.Overlaps(src) {
				fresh = append(fresh, r)
			}
		}
		if len(fresh) > 0 {
			h.filter = tombstone.NewFilter(src, fresh, h.filter)
		}
		h.upTo = d.last
	}
	if h.filter == nil {
		return src
	}
	return h.filter
}

// settle keeps the new filter if it hides spans, and restores the previous one if it hides nothing.
func (h *filterState) settle() {
	if h.filter.Redundant() {
		h.filter = h.previous
	} else if _, known := h.filter.Hidden(); known {
		h.previous = h.filter
	}
}

// after returns the index of the first rule with a number above the given one.
func (d *deletions) after(number uint64) int {
	i, _ := slices.BinarySearchFunc(d.rules, number+1, func(r *tombstone.Rule, n uint64) int { return cmp.Compare(r.Number, n) })
	return i
}

var errTooManyDeletions = errors.New(
	"too many pending deletions; combine several traces in one deletion, or retry after more segments are merged")

// checkCapacity fails if there are too many tombstones for another one. The caller holds slot.
func (d *deletions) checkCapacity(e *exporter, r *tombstone.Rule) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	traces := len(r.Traces)
	for _, o := range d.rules {
		traces += len(o.Traces)
	}
	if len(d.rules) >= maxTombstones || traces > maxTombstoneTraces {
		return pipeline.Overloaded(errTooManyDeletions, time.Minute)
	}
	return nil
}

// add assigns the number of a rule, makes its tombstone durable and activates it. It also activates
// the rule if writing failed and the file may exist anyway: otherwise segments merged from now on
// would not have applied it, and after a restart it would hide later spans in them. No other rule
// is added until that is resolved, because spans that both cover would be attributed to the first
// one. The caller holds slot and intake.
func (d *deletions) add(e *exporter, r *tombstone.Rule, through uint64) error {
	if d.unsure != nil {
		if err := e.writeTombstone(d.unsure.Tombstone); err != nil {
			return fmt.Errorf("repeating the failed write of the previous deletion: %w", err)
		}
		d.unsure = nil
	}
	d.given++
	r.Number, r.Through = d.given, through
	err := e.writeTombstone(r.Tombstone)
	switch {
	case errors.Is(err, tombstone.ErrInDoubt):
		d.unsure = r
	case err != nil:
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	d.rules = append(d.rules, r)
	d.last = r.Number
	return err
}

// writeTombstone makes a tombstone durable. If the disk is full, it deletes the reserve first.
func (e *exporter) writeTombstone(t *tombstone.Tombstone) error {
	err := e.deletions.files.Write(t)
	if vfs.NoSpace(err) {
		e.makeSpace("record a deletion", err)
		err = e.deletions.files.Write(t)
	}
	return err
}

// loadDeletions reads the tombstones. It runs before the rest of the recovery: no new epoch may be
// one that a tombstone covers.
func (e *exporter) loadDeletions() error {
	d := &e.deletions
	d.files = tombstone.Dir{FS: e.env.FS, Path: path.Join(e.path, deletionDir)}
	d.parked = tombstone.Dir{FS: e.env.FS, Path: path.Join(e.dir.QuarantineDir(), deletionDir)}
	if err := d.parked.MoveAll(d.files); err != nil {
		return err
	}
	marks, damaged, err := d.files.Load()
	if err != nil {
		return err
	}
	for _, f := range damaged {
		d.given = max(d.given, f.Number)
		if err := e.noteDamagedDeletion(f); err != nil {
			return err
		}
	}
	for _, m := range marks {
		d.rules = append(d.rules, tombstone.NewRule(m))
		d.given, d.last = max(d.given, m.Number), m.Number
		e.lastEpoch = max(e.lastEpoch, m.Through)
	}
	return nil
}

// noteDamagedDeletion reports a deletion of which a file could not be read, and sets the files
// aside if the deletion is lost.
func (e *exporter) noteDamagedDeletion(f tombstone.Damaged) error {
	if f.Restored {
		e.metrics.restored.Inc()
		e.log.Error("deletion file was damaged or missing; restored from its copy; nothing is lost", zap.String("file", f.Paths[0]),
			zap.Error(f.Err))
		return nil
	}
	var kept []string
	for _, name := range f.Paths {
		to, err := e.dir.Quarantine(name)
		if err != nil {
			return err
		}
		kept = append(kept, to)
	}
	e.metrics.lostDeletions.Inc()
	e.log.Error("cannot read a deletion; moved to quarantine; spans that it hid are visible again; repeat the deletion",
		zap.Strings("files", kept), zap.Uint64("deletion", f.Number), zap.Error(f.Err))
	return nil
}

// reserveDeletionNumbers makes sure that no number is assigned again that a segment has recorded as
// applied.
func (e *exporter) reserveDeletionNumbers() {
	for _, h := range e.segments {
		e.deletions.given = max(e.deletions.given, h.info.LastTombstone)
	}
}

// deletionInterval is the interval of maintainDeletions.
const deletionInterval = tick

// maintainDeletions runs until Stop. It evaluates deletion filters, so that queries need not, and
// removes tombstones that are no longer needed.
func (e *exporter) maintainDeletions() {
	ticker := time.NewTicker(deletionInterval)
	defer ticker.Stop()
	ctx := untilStop{context.Background(), e.stop}
	for {
		select {
		case <-e.stop:
			return
		case <-ticker.C:
			if err := e.cleanDeletions(ctx); err != nil && ctx.Err() == nil {
				e.log.Warn("maintenance of deletions failed; will retry", zap.Error(err))
			}
		}
	}
}

// untilStop is a context that ends when the store stops.
type untilStop struct {
	context.Context
	stop <-chan struct{}
}

func (u untilStop) Done() <-chan struct{} { return u.stop }

func (u untilStop) Err() error {
	select {
	case <-u.stop:
		return context.Canceled
	default:
		return nil
	}
}

func (e *exporter) cleanDeletions(ctx context.Context) error {
	d := &e.deletions
	e.mu.Lock()
	idle := len(d.rules) == 0
	e.mu.Unlock()
	if idle {
		return nil
	}
	if _, _, err := e.countHidden(ctx, 0); err != nil {
		return err
	}
	e.dropEmptied()
	select {
	case d.slot <- struct{}{}:
		defer func() { <-d.slot }()
	default:
		return nil // a Delete is running
	}
	return e.removeTombstones()
}

// dropEmptied drops segments whose spans are all deleted.
func (e *exporter) dropEmptied() {
	for _, h := range e.expirable() {
		e.mu.Lock()
		m, ok := e.sourceOf(h).(*tombstone.Filter)
		e.mu.Unlock()
		if !ok {
			continue
		}
		if n, known := m.Hidden(); known && n == h.info.Rows {
			e.drop(h, expiredEmpty)
		}
	}
}

// removeTombstones removes the tombstones that no file needs. The last one stays, so that its
// number is not assigned again: segments record applied tombstones by number.
func (e *exporter) removeTombstones() error {
	unneeded := e.unneededTombstones(e.deletions.given)
	if len(unneeded) == 0 {
		return nil
	}
	oldest, quarantined, err := e.oldestUnread()
	if err != nil {
		return err
	}
	for _, r := range unneeded {
		if oldest <= r.Through {
			continue // a file that the store does not read may need it if it comes back
		}
		if quarantined <= r.Through {
			err = e.deletions.files.Move(r.Number, e.deletions.parked)
		} else {
			err = e.deletions.files.Remove(r.Number)
		}
		if err != nil {
			return err
		}
		e.mu.Lock()
		e.deletions.rules = slices.DeleteFunc(slices.Clone(e.deletions.rules), func(o *tombstone.Rule) bool { return o == r })
		e.mu.Unlock()
		e.log.Info("deletion completed; no file contains the deleted spans", zap.Uint64("deletion", r.Number))
	}
	return nil
}

// unneededTombstones returns the rules, except the last one, that hide nothing of what the store
// reads.
func (e *exporter) unneededTombstones(last uint64) []*tombstone.Rule {
	e.mu.Lock()
	defer e.mu.Unlock()
	needed := map[*tombstone.Rule]bool{}
	note := func(s source.Source) {
		if m, ok := s.(*tombstone.Filter); ok {
			for _, r := range m.Rules() {
				needed[r] = true
			}
		}
	}
	for _, l := range e.frozen {
		note(e.sourceOfLive(l))
	}
	for _, h := range e.segments {
		note(e.sourceOf(h))
	}
	return slices.DeleteFunc(slices.Clone(e.deletions.rules), func(r *tombstone.Rule) bool { return needed[r] || r.Number == last })
}

// oldestUnread returns the first epoch with spans in files that no view reads: logs and segments to
// be deleted (including deleted ones that may reappear after a power failure), and the first epoch
// in quarantined segments, which an operator may restore. Without such files they are the maximum
// uint64.
func (e *exporter) oldestUnread() (oldest, quarantined uint64, err error) {
	oldest, quarantined = ^uint64(0), ^uint64(0)
	epochs, err := e.logs.Epochs()
	if err != nil {
		return 0, 0, err
	}
	if len(epochs) > 0 {
		oldest = epochs[0]
	}
	e.mu.Lock()
	known := make(map[string]bool, len(e.segments))
	for _, h := range e.segments {
		known[h.name.String()] = true
	}
	for _, h := range e.doomed {
		oldest = min(oldest, h.name.First)
	}
	e.mu.Unlock()
	names, err := e.dir.Segments()
	if err != nil {
		return 0, 0, err
	}
	for _, s := range names {
		if !known[s.String()] {
			oldest = min(oldest, s.First)
		}
	}
	err = e.quarantinedSegments(func(s directory.Segment) { quarantined = min(quarantined, s.First) })
	return oldest, quarantined, err
}

// quarantinedSegments calls visit with the segments in the quarantine. Their day is not known.
func (e *exporter) quarantinedSegments(visit func(directory.Segment)) error {
	set, err := e.dir.Quarantined()
	if err != nil {
		return err
	}
	for _, f := range set {
		if s, ok := directory.ParseSegment(path.Join(anyDay, f.Name)); ok {
			visit(s)
		}
	}
	return nil
}

// anyDay completes the name of a quarantined segment, which does not contain its day.
const anyDay = "20000101"
