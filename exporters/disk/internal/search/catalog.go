package search

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// eachShape calls f with the shapes of a tenant. Damaged tables are noted.
func (s *session) eachShape(ctx context.Context, tenant string, f func(src int, t *rows.Tables, id uint32, shape *rows.Shape)) error {
	for src := range s.sources {
		if err := ctx.Err(); err != nil {
			return err
		}
		t, err := s.tablesOf(src)
		if err != nil {
			return err
		}
		if t == nil {
			continue
		}
		for i := range t.Shapes {
			// A service is never "", except of shapes that were lost.
			if sh := &t.Shapes[i]; sh.Tenant == tenant && sh.Service != "" && readable(t, sh) {
				f(src, t, uint32(i), sh)
			}
		}
	}
	return nil
}

// Services implements tracestore.Catalog.
func (e *Engine) Services(ctx context.Context, tenant string) ([]string, error) {
	s := e.begin()
	defer s.lease.release()
	l := s.newList("", e.options.MaxValues)
	err := s.eachShape(ctx, tenant, func(_ int, _ *rows.Tables, _ uint32, shape *rows.Shape) { l.add(shape.Service) })
	if err != nil {
		return nil, err
	}
	return l.sorted(), nil
}

// Operations implements tracestore.Catalog. Where a service has so many names that they stand in rows, those of the newest spans are
// listed.
func (e *Engine) Operations(ctx context.Context, tenant, service, kind string) ([]tracestore.Operation, error) {
	s := e.begin()
	defer s.lease.release()
	found := make(map[tracestore.Operation]struct{})
	add := func(name string, k int32) {
		sp := otlpdata.Span{Name: name, Kind: k}
		op := tracestore.Operation{Name: sp.Operation(), Kind: sp.KindName()}
		if _, known := found[op]; known || kind != "" && kind != op.Kind || len(found) >= e.options.MaxValues {
			return
		}
		op.Name = strings.Clone(op.Name)
		found[op] = struct{}{}
	}
	sc := s.newScan()
	err := s.eachShape(ctx, tenant, func(src int, t *rows.Tables, id uint32, shape *rows.Shape) {
		switch {
		case shape.Service != service:
		case shape.NameInRow:
			sc.want(src, t, id)
		default:
			add(shape.Name, shape.Kind)
		}
	})
	if err != nil {
		return nil, err
	}
	err = sc.run(ctx, func(w *scanned, b source.Block, row int) (bool, error) {
		name, err := nameOf(w.tables, w.shape, b, row)
		if err == nil {
			add(name, w.shape.Kind)
		}
		return len(found) < e.options.MaxValues, err
	})
	if err != nil {
		return nil, err
	}
	out := make([]tracestore.Operation, 0, len(found))
	for op := range found {
		out = append(out, op)
	}
	slices.SortFunc(out, func(a, b tracestore.Operation) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	return out, nil
}
