package tombstone

import (
	"context"
	"errors"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

var _ source.Traces = (*Filter)(nil)

// Trace visits the visible rows of a trace. It does not need Evaluate.
func (f *Filter) Trace(ctx context.Context, tenant string, id otlpdata.TraceID,
	visit func(b source.Block, rows []int32) error) error {
	tf := f.filterFor(tenant)
	if tf.hides(id) {
		return nil
	}
	if len(tf.ranges) == 0 {
		return f.inner.Trace(ctx, tenant, id, visit)
	}
	return f.inner.Trace(ctx, tenant, id, func(b source.Block, list []int32) error {
		visible, err := tf.visible(b, list)
		if err != nil || len(visible) == 0 {
			return err
		}
		return visit(b, visible)
	})
}

// Traces is Trace for several traces.
func (f *Filter) Traces(ctx context.Context, tenant string, ids []otlpdata.TraceID,
	visit func(b source.Block, which int, rows []int32) error) error {
	inner, ok := f.inner.(source.Traces)
	if !ok {
		return f.visitOneByOne(ctx, tenant, ids, visit)
	}
	tf := f.filterFor(tenant)
	remaining := make([]otlpdata.TraceID, 0, len(ids))
	which := make([]int, 0, len(ids))
	for i, id := range ids {
		if !tf.hides(id) {
			remaining, which = append(remaining, id), append(which, i)
		}
	}
	return inner.Traces(ctx, tenant, remaining, func(b source.Block, i int, list []int32) error {
		list, err := tf.visible(b, list)
		if err != nil || len(list) == 0 {
			return err
		}
		return visit(b, which[i], list)
	})
}

func (f *Filter) visitOneByOne(ctx context.Context, tenant string, ids []otlpdata.TraceID,
	visit func(b source.Block, which int, rows []int32) error) error {
	var damage []error
	for i, id := range ids {
		err := f.Trace(ctx, tenant, id, func(b source.Block, list []int32) error { return visit(b, i, list) })
		switch d := (*source.DamageError)(nil); {
		case errors.As(err, &d):
			damage = append(damage, err)
		case err != nil:
			return errors.Join(append(damage, err)...)
		}
	}
	return errors.Join(damage...)
}

// traceFilter decides which rows of the traces of one tenant are hidden.
type traceFilter struct {
	filter   *Filter
	ranges   []*Rule                       // rules without traces
	single   map[otlpdata.TraceID]struct{} // ids of rules with one trace; there may be thousands
	multiple []*Rule                       // rules with several traces
}

// traceFilters are the trace filters of all tenants that have rules. Immutable.
type traceFilters struct {
	final    bool // made from the result of a complete evaluation
	byTenant map[string]*traceFilter
}

func (f *Filter) filterFor(tenant string) *traceFilter {
	e := f.result.Load()
	final := e != nil && e.complete()
	all := f.traceFilters.Load()
	if all == nil || final && !all.final {
		all = &traceFilters{final, make(map[string]*traceFilter)}
		for _, r := range f.Rules() {
			all.add(f, r)
		}
		f.traceFilters.Store(all)
	}
	if tf := all.byTenant[tenant]; tf != nil {
		return tf
	}
	return &traceFilter{filter: f}
}

func (all *traceFilters) add(f *Filter, r *Rule) {
	tf := all.byTenant[r.Tenant]
	if tf == nil {
		tf = &traceFilter{filter: f, single: make(map[otlpdata.TraceID]struct{})}
		all.byTenant[r.Tenant] = tf
	}
	switch len(r.Traces) {
	case 0:
		tf.ranges = append(tf.ranges, r)
	case 1:
		tf.single[r.Traces[0]] = struct{}{}
	default:
		tf.multiple = append(tf.multiple, r)
	}
}

// hides reports whether a rule names the trace, so that all of its rows are hidden.
func (tf *traceFilter) hides(id otlpdata.TraceID) bool {
	if _, listed := tf.single[id]; listed {
		return true
	}
	return slices.ContainsFunc(tf.multiple, func(r *Rule) bool {
		_, listed := r.traceSet[id]
		return listed
	})
}

// visible returns the rows of a list that no rule of a service or time range hides. The list is not
// changed.
func (tf *traceFilter) visible(b source.Block, list []int32) ([]int32, error) {
	if len(tf.ranges) == 0 {
		return list, nil
	}
	t, err := tf.filter.inner.Tables()
	if err != nil {
		return nil, err
	}
	visible := make([]int32, 0, len(list))
	var h rows.Head
	for _, row := range list {
		if err := b.Head(int(row), &h); err != nil {
			return nil, err
		}
		if int(h.Shape) >= len(t.Shapes) {
			visible = append(visible, row) // damaged; the reader reports it
			continue
		}
		shape := &t.Shapes[h.Shape]
		if !slices.ContainsFunc(tf.ranges, func(r *Rule) bool { return r.hides(shape, h.Start, nil) }) {
			visible = append(visible, row)
		}
	}
	return visible, nil
}
