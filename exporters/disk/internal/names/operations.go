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

// allSources returns the numbers of all sources.
func allSources(s *scan.Session) []int {
	out := make([]int, len(s.Sources))
	for i := range out {
		out[i] = i
	}
	return out
}

// eachShape calls f with the shapes of a tenant in some sources. Damaged vocabularies are recorded.
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
			// Every shape has a service unless its definition is lost.
			if sh := &t.Shapes[i]; sh.Tenant == tenant && sh.Service != "" && scan.Readable(t, sh) {
				f(src, t, uint32(i), sh)
			}
		}
	}
	return nil
}

// operations is a list of operations of one kind, or of all kinds if kind is "": those in the index
// and those that were added.
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
		op.Name = strings.Clone(op.Name) // the name may refer to memory of the view
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
