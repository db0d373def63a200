package disk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/exporters/disk/internal/tombstone"
	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// delete deletes spans on request, see exporter.Delete.
//
//	             with intake stopped:
//	             ├─ freeze the memtable if it holds spans to delete
//	deletion ──▶ ├─ tombstone: up to the last epoch that takes no spans
//	             └─ write and sync the tombstone, then activate it
//	         ──▶ filters in all views ──▶ count
//
// So a tombstone covers the spans that arrived before it, and none that arrive later. Deletions run
// one at a time.
func (d *deletions) delete(ctx context.Context, tenant string, what tracestore.Deletion) (tracestore.Deleted, error) {
	if !d.config.AllowDelete {
		return tracestore.Deleted{}, pipeline.Permanent(tracestore.ErrNotAllowed)
	}
	if err := what.Check(); err != nil {
		return tracestore.Deleted{}, pipeline.Permanent(err)
	}
	from, to, _ := what.Window()
	rule := tombstone.NewRule(&tombstone.Tombstone{
		Made: d.env.Now(), Tenant: tenant, Traces: what.Traces, Service: what.Service, From: from, To: to})
	select {
	case d.slot <- struct{}{}:
		defer func() { <-d.slot }()
	case <-ctx.Done():
		return tracestore.Deleted{}, ctx.Err()
	}
	if what.DryRun {
		n, unreadable, err := d.countCovered(ctx, rule)
		if err != nil {
			return tracestore.Deleted{}, fmt.Errorf("counting the spans to delete: %w", err)
		}
		if unreadable != nil {
			d.log.Warn("dry run of a deletion did not count unreadable spans", zap.Error(unreadable))
		}
		return tracestore.Deleted{Spans: n}, nil
	}
	if err := d.checkCapacity(rule); err != nil {
		return tracestore.Deleted{}, err
	}
	if err := d.recordTombstone(ctx, rule); err != nil {
		return tracestore.Deleted{}, err
	}
	n, unreadable, err := d.countHidden(ctx, rule.Number)
	d.log.Info("deleted spans on request", zap.String("tenant", tenant), zap.Stringer("what", &what), zap.Int("spans", n),
		zap.Uint64("deletion", rule.Number), zap.NamedError("unreadable", unreadable), zap.Error(err))
	if err != nil {
		return tracestore.Deleted{Spans: n}, fmt.Errorf("spans are deleted, but counting them failed: %w", err)
	}
	return tracestore.Deleted{Spans: n}, nil
}

// recordTombstone makes a tombstone durable and activates it. If a memtable must be frozen first,
// it waits for capacity as intake does.
func (d *deletions) recordTombstone(ctx context.Context, r *tombstone.Rule) error {
	deadline := time.NewTimer(time.Duration(d.config.MaxWait))
	defer deadline.Stop()
	for {
		wait, err := d.tryRecordTombstone(ctx, r)
		if wait == nil || err != nil {
			return err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline.C:
			return pipeline.Overloaded(errBusy, 0)
		}
	}
}

func (d *deletions) tryRecordTombstone(ctx context.Context, r *tombstone.Rule) (wait <-chan struct{}, err error) {
	d.intake.writing.Lock()
	defer d.intake.writing.Unlock()
	through, wait, err := d.boundary(ctx, r)
	if wait != nil || err != nil {
		return wait, err
	}
	// While intake is stopped there is no segment of a later epoch, so no merge can put spans from
	// before and after the boundary into one file before the tombstone is active.
	return nil, d.add(r, through)
}

// boundary returns the last epoch to which a rule applies: the rule does not apply to the epoch of
// the memtable that continues to accept spans. If this memtable contains spans that the rule hides,
// it is frozen, or the caller must wait. The caller holds intake.writing.
func (d *deletions) boundary(ctx context.Context, r *tombstone.Rule) (through uint64, wait <-chan struct{}, err error) {
	in := d.intake
	in.mu.Lock()
	l, closed := in.active, in.closed
	in.mu.Unlock()
	switch {
	case closed:
		return 0, nil, pipeline.ErrStopping
	case l == nil:
		return in.lastEpoch, nil, nil
	case !r.MayHide(ctx, l.table.Source()):
		return l.epoch - 1, nil, nil
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.frozen) >= maxFrozen {
		return 0, in.capacity, in.stuck
	}
	in.freeze()
	return l.epoch, nil, nil
}

// countHidden evaluates the deletion filters and returns how many readable spans the tombstone with
// the given number hides.
func (d *deletions) countHidden(ctx context.Context, number uint64) (spans int, unreadable, err error) {
	return d.count(ctx, number, func(s source.Source) (m *tombstone.Filter) {
		m, _ = s.(*tombstone.Filter)
		return m
	})
}

// countCovered returns how many readable spans a rule would hide.
func (d *deletions) countCovered(ctx context.Context, r *tombstone.Rule) (spans int, unreadable, err error) {
	return d.count(ctx, r.Number, func(s source.Source) *tombstone.Filter {
		if !r.Overlaps(s) {
			return nil
		}
		return tombstone.NewFilter(s, []*tombstone.Rule{r}, nil)
	})
}

// count returns how many readable spans the tombstone with the given number hides. filterOf returns
// the filter of a source, or nil if nothing is hidden there.
func (d *deletions) count(
	ctx context.Context, number uint64, filterOf func(source.Source) *tombstone.Filter,
) (spans int, unreadable, err error) {
	var damage []error
	v := d.view()
	defer v.Release()
	for _, s := range v.Sources() {
		m := filterOf(s)
		if m == nil {
			continue
		}
		err := m.Evaluate(ctx)
		if part := (*source.DamageError)(nil); errors.As(err, &part) && ctx.Err() == nil {
			damage = append(damage, err) // unreadable spans are not shown either
			continue
		}
		if err != nil {
			return spans, nil, err
		}
		spans += m.HiddenBy(number)
	}
	return spans, errors.Join(damage...), nil
}

// sourceOf returns the spans of a segment that are not deleted. The caller holds mu.
func (d *deletions) sourceOf(h *handle) source.Source {
	return d.visible(&h.deletion, h.segment, h.name.First, h.info.LastTombstone)
}

// sourceOfLive returns the spans of a memtable that are not deleted. The caller holds mu.
func (d *deletions) sourceOfLive(l *live) source.Source {
	return d.visible(&l.deletion, l.table.Source(), l.epoch, 0)
}

// visibleIn returns the sources for a merge of the inputs, and the number up to which tombstones
// are applied in the output. The number is at least the number of the last tombstone applied in
// each input, because the tombstones of an input may no longer exist and their numbers must not be
// reused.
func (d *deletions) visibleIn(inputs []*handle) (sources []source.Source, applied uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	applied = d.last
	for _, h := range inputs {
		sources, applied = append(sources, d.sourceOf(h)), max(applied, h.info.LastTombstone)
	}
	return sources, applied
}

// filterOf returns the filter that hides the deleted spans of a segment, or nil.
func (d *deletions) filterOf(h *handle) *tombstone.Filter {
	d.mu.Lock()
	defer d.mu.Unlock()
	m, _ := d.sourceOf(h).(*tombstone.Filter)
	return m
}

// A segment is rewritten to free the space of deleted spans when they are at least 1/rewriteShare
// of its spans, or when the oldest deletion is rewriteAfter old. A merge frees the space earlier.
const (
	rewriteShare = 10
	rewriteAfter = time.Hour
)

// needsRewrite reports whether a segment should be rewritten without its deleted spans.
func (d *deletions) needsRewrite(h *handle) bool {
	m := d.filterOf(h)
	if m == nil {
		return false
	}
	n, known := m.Hidden()
	return known && n > 0 && (n >= h.info.Rows/rewriteShare || d.env.Now().Sub(m.OldestDeletion()) >= rewriteAfter)
}
