package disk

import (
	"context"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/disk/internal/directory"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/tombstone"
	"github.com/tracing-backend/tracing/pipeline/storage/wal"
)

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
			if e.dir.InPlace() != nil {
				continue // the maintenance loop reports it
			}
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
// in quarantined and missing segments, which an operator may restore. Without such files they are
// the maximum uint64.
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

// quarantinedSegments calls visit with the segments in the quarantine, those about which it has a
// note because they are missing, and a segment for each log there, from which repair writes one.
// Their day is not known.
func (e *exporter) quarantinedSegments(visit func(directory.Segment)) error {
	set, err := e.dir.Quarantined()
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
