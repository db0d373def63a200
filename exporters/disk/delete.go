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

var _ tracestore.Deleter = (*exporter)(nil)

// Delete implements tracestore.Deleter.
//
//	             with intake stopped:
//	             ├─ freeze the memtable if it holds spans to delete
//	deletion ──▶ ├─ tombstone: up to the last epoch that takes no spans
//	             └─ write and sync the tombstone, then activate it
//	         ──▶ filters in all views ──▶ count
//
// So a tombstone covers the spans that arrived before it, and none that arrive later. Deletions run
// one at a time.
func (e *exporter) Delete(ctx context.Context, tenant string, d tracestore.Deletion) (tracestore.Deleted, error) {
	if !e.config.AllowDelete {
		return tracestore.Deleted{}, pipeline.Permanent(tracestore.ErrNotAllowed)
	}
	if err := d.Check(); err != nil {
		return tracestore.Deleted{}, pipeline.Permanent(err)
	}
	select {
	case e.deletions.slot <- struct{}{}:
		defer func() { <-e.deletions.slot }()
	case <-ctx.Done():
		return tracestore.Deleted{}, ctx.Err()
	}
	from, to, _ := d.Window()
	rule := tombstone.NewRule(&tombstone.Tombstone{
		Made: e.env.Now(), Tenant: tenant, Traces: d.Traces, Service: d.Service, From: from, To: to})
	if err := e.deletions.checkCapacity(e, rule); err != nil {
		return tracestore.Deleted{}, err
	}
	if err := e.recordTombstone(ctx, rule); err != nil {
		return tracestore.Deleted{}, err
	}
	n, unreadable, err := e.countHidden(ctx, rule.Number)
	e.log.Info("deleted spans on request", zap.String("tenant", tenant), zap.Stringer("what", &d), zap.Int("spans", n),
		zap.Uint64("deletion", rule.Number), zap.NamedError("unreadable", unreadable), zap.Error(err))
	if err != nil {
		return tracestore.Deleted{Spans: n}, fmt.Errorf("spans are deleted, but counting them failed: %w", err)
	}
	return tracestore.Deleted{Spans: n}, nil
}

// recordTombstone makes a tombstone durable and activates it. If a memtable has to be frozen first,
// it waits for capacity as intake does.
func (e *exporter) recordTombstone(ctx context.Context, r *tombstone.Rule) error {
	deadline := time.NewTimer(time.Duration(e.config.MaxWait))
	defer deadline.Stop()
	for {
		wait, err := e.tryRecordTombstone(ctx, r)
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

func (e *exporter) tryRecordTombstone(ctx context.Context, r *tombstone.Rule) (wait <-chan struct{}, err error) {
	e.intake.Lock()
	defer e.intake.Unlock()
	through, wait, err := e.boundary(ctx, r)
	if wait != nil || err != nil {
		return wait, err
	}
	// While intake is stopped there is no segment of a later epoch, so no merge can put spans from
	// before and after the boundary into one file before the tombstone is active.
	return nil, e.deletions.add(e, r, through)
}

// boundary returns the epoch up to which a rule applies: all epochs except that of the memtable
// that continues to take spans. If that memtable holds spans that the rule hides, it is frozen, or
// the caller has to wait. The caller holds intake.
func (e *exporter) boundary(ctx context.Context, r *tombstone.Rule) (through uint64, wait <-chan struct{}, err error) {
	e.mu.Lock()
	l, closed := e.active, e.closed
	e.mu.Unlock()
	switch {
	case closed:
		return 0, nil, pipeline.ErrStopping
	case l == nil:
		return e.lastEpoch, nil, nil
	case !r.MayHide(ctx, l.table.Source()):
		return l.epoch - 1, nil, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.frozen) >= maxFrozen {
		return 0, e.capacity, e.stuck
	}
	e.freeze()
	return l.epoch, nil, nil
}

// countHidden evaluates the deletion filters and returns how many readable spans the tombstone with
// the given number hides.
func (e *exporter) countHidden(ctx context.Context, number uint64) (spans int, unreadable, err error) {
	var damage []error
	v := e.view()
	defer v.Release()
	for _, s := range v.Sources() {
		m, ok := s.(*tombstone.Filter)
		if !ok {
			continue
		}
		err := m.Evaluate(ctx)
		if d := (*source.DamageError)(nil); errors.As(err, &d) && ctx.Err() == nil {
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
func (e *exporter) sourceOf(h *handle) source.Source {
	return e.deletions.visible(&h.deletion, h.segment, h.name.First, h.info.LastTombstone)
}

// sourceOfLive returns the spans of a memtable that are not deleted. The caller holds mu.
func (e *exporter) sourceOfLive(l *live) source.Source {
	return e.deletions.visible(&l.deletion, l.table.Source(), l.epoch, 0)
}

// deletionsApplied returns the number up to which tombstones are applied in a segment that is
// merged from what sourceOf returns for the inputs while the caller holds mu. It is not below that
// of an input, whose tombstones may no longer exist: their numbers must not be used again.
func (e *exporter) deletionsApplied(inputs []*handle) uint64 {
	last := e.deletions.last
	for _, h := range inputs {
		last = max(last, h.info.LastTombstone)
	}
	return last
}

// A segment is rewritten to free the space of deleted spans when they are at least one in
// rewriteShare of its spans, or when the oldest deletion is rewriteAfter old. A merge does it
// earlier.
const (
	rewriteShare = 10
	rewriteAfter = time.Hour
)

// needsRewrite reports whether a segment should be rewritten without its deleted spans. The caller
// holds mu.
func (e *exporter) needsRewrite(h *handle) bool {
	m, ok := e.sourceOf(h).(*tombstone.Filter)
	if !ok {
		return false
	}
	n, known := m.Hidden()
	return known && n > 0 && (n >= h.info.Rows/rewriteShare || e.env.Now().Sub(m.OldestDeletion()) >= rewriteAfter)
}
