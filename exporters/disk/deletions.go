package disk

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

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

// deletions deletes spans on request: it holds the active tombstones, hides the spans that they
// cover, and removes tombstones that are no longer needed.
type deletions struct {
	*common
	intake    *intake
	segments  *segments
	retention *retention

	files tombstone.Dir
	// parked holds, in the quarantine, the tombstones that only quarantined segments need. They are
	// not active. The next start activates them, in case such a segment was restored.
	parked tombstone.Dir
	slot   chan struct{} // holds a token while a Delete or the maintenance of deletions runs
	given  uint64        // the last assigned number; guarded by slot
	// unsure is an active rule whose tombstone could not be written; its file may or may not exist.
	// Guarded by slot.
	unsure *tombstone.Rule

	mu    sync.Mutex        // see the order of locks in doc.go; guards handle.deletion and live.deletion, too
	rules []*tombstone.Rule // by number; the slice is replaced or appended to, never modified in place
	last  uint64            // number of the last active tombstone
}

// filterState is the deletion filter of a memtable or a segment. Guarded by deletions.mu.
type filterState struct {
	upTo     uint64            // number of the last tombstone that was considered
	filter   *tombstone.Filter // nil: nothing is hidden
	previous *tombstone.Filter // the previous filter, restored if the new rules hide nothing
}

// visible returns src without its deleted spans, or src itself if none are deleted. The result
// stays the same until a deletion affects src. The caller holds mu.
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
func (d *deletions) checkCapacity(r *tombstone.Rule) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	traces := len(r.Traces)
	for _, o := range d.rules {
		traces += len(o.Traces)
	}
	if len(d.rules) >= maxTombstones || traces > maxTombstoneTraces {
		return pipeline.Overloaded(errTooManyDeletions, time.Minute)
	}
	return nil
}

// add assigns the number of a rule, makes its tombstone durable and activates it. If writing failed
// but the file may exist anyway, it activates the rule too: otherwise new merged segments would not
// apply it, and after a restart it would hide later spans in them. No other rule is added until
// this is resolved, because spans that both rules cover would be attributed to the first one. The
// caller holds slot and intake.writing.
func (d *deletions) add(r *tombstone.Rule, through uint64) error {
	if d.unsure != nil {
		if err := d.writeTombstone(d.unsure.Tombstone); err != nil {
			return fmt.Errorf("repeating the failed write of the previous deletion: %w", err)
		}
		d.unsure = nil
	}
	d.given++
	r.Number, r.Through = d.given, through
	err := d.writeTombstone(r.Tombstone)
	switch {
	case errors.Is(err, tombstone.ErrInDoubt):
		d.unsure = r
	case err != nil:
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.rules = append(d.rules, r)
	d.last = r.Number
	return err
}

// writeTombstone makes a tombstone durable. If the disk is full, it deletes the reserve first.
func (d *deletions) writeTombstone(t *tombstone.Tombstone) error {
	err := d.files.Write(t)
	if vfs.NoSpace(err) {
		d.retention.makeSpace("record a deletion", err)
		err = d.files.Write(t)
	}
	return err
}

// load reads the tombstones. It runs before the rest of the recovery, because a new epoch must not
// be one that a tombstone covers.
func (d *deletions) load() error {
	d.files = tombstone.Dir{FS: d.dir.FS(), Path: path.Join(d.path, deletionDir)}
	d.parked = tombstone.Dir{FS: d.dir.FS(), Path: path.Join(d.dir.QuarantineDir(), deletionDir)}
	if err := d.parked.MoveAll(d.files); err != nil {
		return err
	}
	marks, damaged, err := d.files.Load()
	if err != nil {
		return err
	}
	for _, f := range damaged {
		d.given = max(d.given, f.Number)
		if err := d.noteDamaged(f); err != nil {
			return err
		}
	}
	for _, m := range marks {
		d.rules = append(d.rules, tombstone.NewRule(m))
		d.given, d.last = max(d.given, m.Number), m.Number
		d.intake.noteEpoch(m.Through)
	}
	return nil
}

// noteDamaged reports a deletion with an unreadable file. If the deletion is lost, it sets the
// files aside.
func (d *deletions) noteDamaged(f tombstone.Damaged) error {
	if f.Restored {
		d.metrics.restored.Inc()
		d.log.Error("deletion file was damaged or missing; restored from its copy; nothing is lost", zap.String("file", f.Paths[0]),
			zap.Error(f.Err))
		return nil
	}
	var kept []string
	for _, name := range f.Paths {
		to, err := d.dir.Quarantine(name)
		if err != nil {
			return err
		}
		kept = append(kept, to)
	}
	d.metrics.lostDeletions.Inc()
	d.log.Error("cannot read a deletion; moved to quarantine; spans that it hid are visible again; repeat the deletion",
		zap.Strings("files", kept), zap.Uint64("deletion", f.Number), zap.Error(f.Err))
	return nil
}

// reserveNumbers makes sure that a number that a segment has recorded as applied is never reused.
func (d *deletions) reserveNumbers() {
	for _, h := range d.segments.all() {
		d.given = max(d.given, h.info.LastTombstone)
	}
}
