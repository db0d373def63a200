package names

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// all returns the numbers of all sources.
func allSources(s *scan.Session) []int {
	out := make([]int, len(s.Sources))
	for i := range out {
		out[i] = i
	}
	return out
}

// eachShape calls f with the shapes of a tenant in some sources. Damaged tables are noted.
func eachShape(ctx context.Context, s *scan.Session, sources []int, tenant string,
	f func(src int, t *rows.Tables, id uint32, shape *rows.Shape)) error {
	for _, src := range sources {
		if err := ctx.Err(); err != nil {
			return err
		}
		t, err := s.Tables(src)
		if err != nil {
			return err
		}
		if t == nil {
			continue
		}
		for i := range t.Shapes {
			// A service is never "", except of shapes that were lost.
			if sh := &t.Shapes[i]; sh.Tenant == tenant && sh.Service != "" && scan.Readable(t, sh) {
				f(src, t, uint32(i), sh)
			}
		}
	}
	return nil
}

// Services implements tracestore.Catalog.
func (c *Catalog) Services(ctx context.Context, tenant string) ([]string, error) {
	s := c.store.Begin()
	defer s.Release()
	n, rest, err := c.indexOf(ctx, s)
	if err != nil {
		return nil, err
	}
	var known []string
	if t := n.tenants[tenant]; t != nil {
		known = t.sorted
	}
	l := newList(s, "", s.Options.MaxValues)
	last := "" // shapes of a service often follow each other
	err = eachShape(ctx, s, rest, tenant, func(_ int, _ *rows.Tables, _ uint32, shape *rows.Shape) {
		if shape.Service == last {
			return
		}
		last = shape.Service
		if _, ok := slices.BinarySearch(known, last); !ok {
			l.add(last)
		}
	})
	if err != nil {
		return nil, err
	}
	out := slices.Concat(known, l.sorted())
	if len(out) > len(known) {
		slices.Sort(out)
	}
	return out[:min(len(out), s.Options.MaxValues)], nil
}

// Operations implements tracestore.Catalog. Where a service has so many names that they stand in rows, those of the newest spans are
// listed.
func (c *Catalog) Operations(ctx context.Context, tenant, service, kind string) ([]tracestore.Operation, error) {
	s := c.store.Begin()
	defer s.Release()
	n, rest, err := c.indexOf(ctx, s)
	if err != nil {
		return nil, err
	}
	l := &operations{kind: kind, max: s.Options.MaxValues}
	if known := n.service(tenant, service); known != nil {
		l.known = known
		if known.inRows {
			rest = allSources(s)
		}
	}
	if err := addOperations(ctx, s, rest, tenant, service, l); err != nil {
		return nil, err
	}
	return l.sorted(), nil
}

// operations is a list of operations of one kind, or of all for "": those that are known, and those that were added.
type operations struct {
	kind  string
	max   int
	known *serviceNames // nil: none
	added map[tracestore.Operation]struct{}
}

func (l *operations) add(name string, kind int32) {
	op := displayOperation(name, kind)
	if l.kind != "" && op.Kind != l.kind || len(l.added) >= l.max {
		return
	}
	if l.known != nil {
		if _, ok := l.known.operations[op]; ok {
			return
		}
	}
	if l.added == nil {
		l.added = make(map[tracestore.Operation]struct{})
	}
	if _, ok := l.added[op]; !ok {
		op.Name = strings.Clone(op.Name) // what is stored may go when the view is released
		l.added[op] = struct{}{}
	}
}

func (l *operations) sorted() []tracestore.Operation {
	out := slices.AppendSeq(make([]tracestore.Operation, 0, len(l.added)), maps.Keys(l.added))
	if l.known != nil {
		for _, op := range l.known.sorted {
			if l.kind == "" || op.Kind == l.kind {
				out = append(out, op)
			}
		}
	}
	if len(l.added) > 0 {
		slices.SortFunc(out, compareOperations)
	}
	return out[:min(len(out), l.max)]
}

// addOperations adds the operations of a service in some sources.
func addOperations(ctx context.Context, s *scan.Session, sources []int, tenant, service string, l *operations) error {
	sc := newShapeScan(s)
	err := eachShape(ctx, s, sources, tenant, func(src int, t *rows.Tables, id uint32, shape *rows.Shape) {
		switch {
		case shape.Service != service:
		case shape.NameInRow:
			sc.want(src, t, id)
		default:
			l.add(shape.Name, shape.Kind)
		}
	})
	if err != nil {
		return err
	}
	return sc.run(ctx, func(w *wantedShape, b source.Block, row int) (bool, error) {
		name, err := scan.SpanName(w.tables, w.shape, b, row)
		if err == nil {
			l.add(name, w.shape.Kind)
		}
		return len(l.added) < l.max, err
	})
}
