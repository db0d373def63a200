package mask

import (
	"context"
	"errors"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

var _ source.Traces = (*Source)(nil)

// Trace visits the rows of a trace that are not hidden. It needs no survey.
func (s *Source) Trace(ctx context.Context, tenant string, id otlpdata.TraceID, visit func(b source.Block, rows []int32) error) error {
	f := s.filterFor(tenant)
	if f.hides(id) {
		return nil
	}
	if len(f.ranges) == 0 {
		return s.src.Trace(ctx, tenant, id, visit)
	}
	return s.src.Trace(ctx, tenant, id, func(b source.Block, list []int32) error {
		left, err := f.without(b, list)
		if err != nil || len(left) == 0 {
			return err
		}
		return visit(b, left)
	})
}

// Traces is Trace for several traces.
func (s *Source) Traces(ctx context.Context, tenant string, ids []otlpdata.TraceID,
	visit func(b source.Block, which int, rows []int32) error) error {
	below, ok := s.src.(source.Traces)
	if !ok {
		return s.oneByOne(ctx, tenant, ids, visit)
	}
	f := s.filterFor(tenant)
	left := make([]otlpdata.TraceID, 0, len(ids))
	which := make([]int, 0, len(ids))
	for i, id := range ids {
		if !f.hides(id) {
			left, which = append(left, id), append(which, i)
		}
	}
	return below.Traces(ctx, tenant, left, func(b source.Block, i int, list []int32) error {
		list, err := f.without(b, list)
		if err != nil || len(list) == 0 {
			return err
		}
		return visit(b, which[i], list)
	})
}

func (s *Source) oneByOne(ctx context.Context, tenant string, ids []otlpdata.TraceID,
	visit func(b source.Block, which int, rows []int32) error) error {
	var damage []error
	for i, id := range ids {
		err := s.Trace(ctx, tenant, id, func(b source.Block, list []int32) error { return visit(b, i, list) })
		switch d := (*source.DamageError)(nil); {
		case errors.As(err, &d):
			damage = append(damage, err)
		case err != nil:
			return errors.Join(append(damage, err)...)
		}
	}
	return errors.Join(damage...)
}

// filter is what is hidden of the traces of one tenant.
type filter struct {
	source *Source
	ranges []*Rule
	single map[otlpdata.TraceID]struct{} // of rules that name one trace, which may be thousands
	traces []*Rule                       // the other ones that name traces
}

// filters are those of all tenants that have rules. They do not change.
type filters struct {
	final bool // nothing more will be known of the rules
	of    map[string]*filter
}

func (s *Source) filterFor(tenant string) *filter {
	v := s.done.Load()
	final := v != nil && v.complete()
	all := s.filters.Load()
	if all == nil || final && !all.final {
		all = &filters{final, make(map[string]*filter)}
		for _, r := range s.Rules() {
			all.add(s, r)
		}
		s.filters.Store(all)
	}
	if f := all.of[tenant]; f != nil {
		return f
	}
	return &filter{source: s}
}

func (all *filters) add(s *Source, r *Rule) {
	f := all.of[r.Tenant]
	if f == nil {
		f = &filter{source: s, single: make(map[otlpdata.TraceID]struct{})}
		all.of[r.Tenant] = f
	}
	switch len(r.Traces) {
	case 0:
		f.ranges = append(f.ranges, r)
	case 1:
		f.single[r.Traces[0]] = struct{}{}
	default:
		f.traces = append(f.traces, r)
	}
}

// hides reports whether a trace is hidden as a whole.
func (f *filter) hides(id otlpdata.TraceID) bool {
	if _, listed := f.single[id]; listed {
		return true
	}
	return slices.ContainsFunc(f.traces, func(r *Rule) bool {
		_, listed := r.traces[id]
		return listed
	})
}

// without returns the rows of a list that no rule of a service or a range hides. The list is not changed.
func (f *filter) without(b source.Block, list []int32) ([]int32, error) {
	if len(f.ranges) == 0 {
		return list, nil
	}
	t, err := f.source.src.Tables()
	if err != nil {
		return nil, err
	}
	left := make([]int32, 0, len(list))
	var h rows.Head
	for _, row := range list {
		if err := b.Head(int(row), &h); err != nil {
			return nil, err
		}
		if int(h.Shape) >= len(t.Shapes) {
			left = append(left, row) // its reader will report it
			continue
		}
		shape := &t.Shapes[h.Shape]
		if !slices.ContainsFunc(f.ranges, func(r *Rule) bool { return r.hides(shape, h.Start, nil) }) {
			left = append(left, row)
		}
	}
	return left, nil
}
