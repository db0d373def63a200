package names

import (
	"slices"
	"strings"
	"unsafe"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// freshNames collects names that are not in a list, in any order.
type freshNames struct {
	list   *nameList
	names  map[tracestore.Operation]struct{}
	inRows bool // there are more, in rows
	bytes  int
}

func newFreshNames(l *nameList) *freshNames {
	return &freshNames{list: l, names: make(map[tracestore.Operation]struct{})}
}

// add adds a name if the list may need it. It keeps a copy, because name may refer to memory of the
// view.
func (f *freshNames) add(op tracestore.Operation) {
	l := f.list
	if !strings.HasPrefix(op.Name, l.query.Prefix) {
		return
	}
	if _, known := f.names[op]; known || f.bytes > 2*maxNameBytes {
		return
	}
	at, known := slices.BinarySearchFunc(l.list, op, compareOperations)
	if known || at > l.query.Limit {
		return
	}
	op.Name = strings.Clone(op.Name)
	f.bytes += len(op.Name)
	f.names[op] = struct{}{}
}

// each is an argument for nameList.merge.
func (f *freshNames) each(visit func(name []byte, kind string) bool) error {
	if f.bytes > 2*maxNameBytes {
		f.list.cut = true
	}
	list := make([]tracestore.Operation, 0, len(f.names))
	for op := range f.names {
		list = append(list, op)
	}
	slices.SortFunc(list, compareOperations)
	for _, op := range list {
		if !visit(unsafe.Slice(unsafe.StringData(op.Name), len(op.Name)), op.Kind) {
			return nil
		}
	}
	return nil
}

// shape returns a function that adds the service of a shape or, if k has a service, its operation.
func (f *freshNames) shape(k listKey) func(src int, t *rows.Tables, id uint32, shape *rows.Shape) {
	last := "" // shapes of a service often follow each other
	return func(_ int, _ *rows.Tables, _ uint32, shape *rows.Shape) {
		switch {
		case k.service == "":
			if shape.Service != last {
				last = shape.Service
				f.add(tracestore.Operation{Name: last})
			}
		case shape.Service != k.service:
		case shape.NameInRow:
			f.inRows = true
		default:
			f.operation(k, shape.Name, shape.Kind)
		}
	}
}

// operation adds an operation, from the name and kind that were sent.
func (f *freshNames) operation(k listKey, name string, kind int32) {
	s := otlpdata.Span{Name: name, Kind: kind}
	if k.kind == "" || s.KindName() == k.kind {
		f.add(tracestore.Operation{Name: s.Operation(), Kind: s.KindName()})
	}
}

// wantRows returns a function that adds the operation of a shape, or selects the shape if its rows
// have names of operations.
func (f *freshNames) wantRows(sc *shapeScan, k listKey) func(src int, t *rows.Tables, id uint32, shape *rows.Shape) {
	return func(src int, t *rows.Tables, id uint32, shape *rows.Shape) {
		switch {
		case shape.Service != k.service:
		case shape.NameInRow:
			sc.want(src, t, id)
		default:
			f.operation(k, shape.Name, shape.Kind)
		}
	}
}

// row returns a function that adds the operation of a row.
func (f *freshNames) row(k listKey) func(w *wantedShape, b source.Block, row int) (bool, error) {
	return func(w *wantedShape, b source.Block, row int) (bool, error) {
		name, err := scan.SpanName(w.tables, w.shape, b, row)
		if err == nil {
			f.operation(k, name, w.shape.Kind)
		}
		return true, err
	}
}
