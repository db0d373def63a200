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
//	             intake stands still
//	             ├─ spans in memory that it covers? freeze the memtable  ─┐
//	deletion ──▶ ├─ mark: through the last epoch that is no longer taken  ├─▶ masks in every view ──▶ count
//	             └─ mark durable, then in force                          ─┘
//
// So the mark covers what had come before, and nothing that comes later. Deletions wait for each other.
func (e *exporter) Delete(ctx context.Context, tenant string, d tracestore.Deletion) (tracestore.Deleted, error) {
	if !e.config.AllowDelete {
		return tracestore.Deleted{}, pipeline.Permanent(tracestore.ErrNotAllowed)
	}
	if err := d.Check(); err != nil {
		return tracestore.Deleted{}, pipeline.Permanent(err)
	}
	select {
	case e.deletions.turn <- struct{}{}:
		defer func() { <-e.deletions.turn }()
	case <-ctx.Done():
		return tracestore.Deleted{}, ctx.Err()
	}
	from, to, _ := d.Window()
	rule := tombstone.NewRule(&tombstone.Tombstone{Made: e.env.Now(), Tenant: tenant, Traces: d.Traces, Service: d.Service, From: from, To: to})
	if err := e.deletions.makeRoom(e, rule); err != nil {
		return tracestore.Deleted{}, err
	}
	if err := e.mark(ctx, rule); err != nil {
		return tracestore.Deleted{}, err
	}
	n, unreadable, err := e.countHidden(ctx, rule.Number)
	e.log.Info("spans deleted on request", zap.String("tenant", tenant), zap.Stringer("what", &d), zap.Int("spans", n),
		zap.Uint64("deletion", rule.Number), zap.NamedError("unreadable", unreadable), zap.Error(err))
	if err != nil {
		return tracestore.Deleted{Spans: n}, fmt.Errorf("the spans are deleted, but not all of them were counted: %w", err)
	}
	return tracestore.Deleted{Spans: n}, nil
}

// mark makes the mark of a rule durable and puts it in force. It waits for room as an intake does, where a memtable has to be frozen.
func (e *exporter) mark(ctx context.Context, r *tombstone.Rule) error {
	patience := time.NewTimer(time.Duration(e.config.MaxWait))
	defer patience.Stop()
	for {
		wait, err := e.tryMark(ctx, r)
		if wait == nil || err != nil {
			return err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		case <-patience.C:
			return pipeline.Overloaded(errBusy, 0)
		}
	}
}

func (e *exporter) tryMark(ctx context.Context, r *tombstone.Rule) (wait <-chan struct{}, err error) {
	e.intake.Lock()
	defer e.intake.Unlock()
	through, wait, err := e.boundary(ctx, r)
	if wait != nil || err != nil {
		return wait, err
	}
	// As long as intake stands still there is no segment of a later epoch, so that no merge can put spans before and behind the boundary into
	// one file before the mark is in force.
	return nil, e.deletions.add(e, r, through)
}

// boundary returns the epoch through which a rule holds: all epochs but that of the memtable that goes on taking spans. Where that one has
// spans which the rule hides, it is frozen, or the caller has to wait. The caller holds intake.
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
		return 0, e.room, e.stuck
	}
	e.freeze()
	return l.epoch, nil, nil
}

// countHidden finds out what masks hide, and returns how many spans one mark hides, of those that can be read.
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
			damage = append(damage, err) // what cannot be read is not shown, either
			continue
		}
		if err != nil {
			return spans, nil, err
		}
		spans += m.HiddenBy(number)
	}
	return spans, errors.Join(damage...), nil
}

// sourceOf returns the spans of a segment that were not deleted. The caller holds mu.
func (e *exporter) sourceOf(h *handle) source.Source {
	return e.deletions.over(&h.hiding, h.segment, h.name.First, h.info.LastTombstone)
}

// sourceOfLive returns the spans of a memtable that were not deleted. The caller holds mu.
func (e *exporter) sourceOfLive(l *live) source.Source {
	return e.deletions.over(&l.hiding, l.table.Source(), l.epoch, 0)
}

// deletionsApplied returns what a segment may say of the marks that were heeded, if it is made of what sourceOf returns under the same hold
// of mu.
func (e *exporter) deletionsApplied([]*handle) uint64 { return e.deletions.last }

// When a segment is written again to give back the space of deleted spans: when they are so much of it, or have been waiting for so long. A
// merge that has other reasons does it on the way.
const (
	rewriteShare = 10 // one in
	rewriteAfter = time.Hour
)

// wantsRewrite reports whether a segment should be written again without its deleted spans. The caller holds mu.
func (e *exporter) wantsRewrite(h *handle) bool {
	m, ok := e.sourceOf(h).(*tombstone.Filter)
	if !ok {
		return false
	}
	n, known := m.Hidden()
	return known && n > 0 && (n >= h.info.Rows/rewriteShare || e.env.Now().Sub(m.OldestDeletion()) >= rewriteAfter)
}
