package disk

import (
	"context"
	"slices"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/tombstone"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

// run works until Stop.
func (d *deletions) run() {
	d.every(tick, func() {
		if d.dir.InPlace() != nil {
			return // the maintenance loop reports it
		}
		if err := d.clean(d.ctx); err != nil && d.ctx.Err() == nil {
			d.log.Warn("maintenance of deletions failed; will retry", zap.Error(err))
		}
	})
}

// clean evaluates deletion filters ahead of queries, and removes tombstones that are no longer
// needed.
func (d *deletions) clean(ctx context.Context) error {
	d.mu.Lock()
	idle := len(d.rules) == 0
	d.mu.Unlock()
	if idle {
		return nil
	}
	if _, _, err := d.countHidden(ctx, 0); err != nil {
		return err
	}
	d.dropEmptied()
	select {
	case d.slot <- struct{}{}:
		defer func() { <-d.slot }()
	default:
		return nil // a Delete is running
	}
	return d.removeTombstones()
}

// dropEmptied drops segments whose spans are all deleted.
func (d *deletions) dropEmptied() {
	for _, h := range d.segments.expirable() {
		m := d.filterOf(h)
		if m == nil {
			continue
		}
		if n, known := m.Hidden(); known && n == h.info.Rows {
			d.segments.drop(h, expiredEmpty)
		}
	}
}

// removeTombstones removes the tombstones that no file needs. The last one stays so that its number
// is not reused, because segments record applied tombstones by number.
func (d *deletions) removeTombstones() error {
	unneeded := d.unneededTombstones(d.given)
	if len(unneeded) == 0 {
		return nil
	}
	oldest, quarantined, err := d.oldestUnread()
	if err != nil {
		return err
	}
	for _, r := range unneeded {
		if oldest <= r.Through {
			continue // a file that is currently not read may need it when it comes back
		}
		if quarantined <= r.Through {
			err = d.files.Move(r.Number, d.parked)
		} else {
			err = d.files.Remove(r.Number)
		}
		if err != nil {
			return err
		}
		d.mu.Lock()
		d.rules = slices.DeleteFunc(slices.Clone(d.rules), func(o *tombstone.Rule) bool { return o == r })
		d.mu.Unlock()
		d.log.Info("deletion completed; no file contains the deleted spans", zap.Uint64("deletion", r.Number))
	}
	return nil
}

// unneededTombstones returns the rules, except the last one, that hide nothing in the files that
// the store reads.
func (d *deletions) unneededTombstones(last uint64) []*tombstone.Rule {
	d.intake.mu.Lock() // so that no memtable becomes a segment meanwhile
	defer d.intake.mu.Unlock()
	segments := d.segments.all()
	d.mu.Lock()
	defer d.mu.Unlock()
	needed := map[*tombstone.Rule]bool{}
	note := func(s source.Source) {
		if m, ok := s.(*tombstone.Filter); ok {
			for _, r := range m.Rules() {
				needed[r] = true
			}
		}
	}
	for _, l := range d.intake.frozen {
		note(d.sourceOfLive(l))
	}
	for _, h := range segments {
		note(d.sourceOf(h))
	}
	return slices.DeleteFunc(slices.Clone(d.rules), func(r *tombstone.Rule) bool { return needed[r] || r.Number == last })
}

// oldestUnread returns two epochs: the first one with spans in logs and segments that are to be
// deleted (or are deleted but may reappear after a power failure), and the first one in quarantined
// and missing segments, which an operator may restore. No view reads these files. Without such
// files, the epochs are the maximum uint64.
func (d *deletions) oldestUnread() (oldest, quarantined uint64, err error) {
	oldest, quarantined = ^uint64(0), ^uint64(0)
	epochs, err := d.logs.Epochs()
	if err != nil {
		return 0, 0, err
	}
	if len(epochs) > 0 {
		oldest = epochs[0]
	}
	d.segments.mu.Lock()
	known := make(map[string]bool, len(d.segments.list))
	for _, h := range d.segments.list {
		known[h.name.String()] = true
	}
	for _, h := range d.segments.doomed {
		oldest = min(oldest, h.name.First)
	}
	d.segments.mu.Unlock()
	names, err := d.dir.Segments()
	if err != nil {
		return 0, 0, err
	}
	for _, s := range names {
		if !known[s.String()] {
			oldest = min(oldest, s.First)
		}
	}
	err = d.quarantinedSegments(func(s directory.Segment) { quarantined = min(quarantined, s.First) })
	return oldest, quarantined, err
}

// quarantinedSegments calls visit with the segments in the quarantine, with missing segments that
// have a note there, and with the segment that repair would write for each log there. Their day is
// unknown.
func (c *common) quarantinedSegments(visit func(directory.Segment)) error {
	set, err := c.dir.Quarantined()
	if err != nil {
		return err
	}
	for _, f := range set {
		if s, ok := directory.ParseQuarantined(f.Name); ok {
			visit(s)
		} else if s, ok := directory.ParseNote(f.Name); ok {
			visit(s)
		} else if epoch, ok := wal.ParseName(f.Name); ok {
			visit(directory.Segment{First: epoch, Last: epoch})
		}
	}
	return nil
}
