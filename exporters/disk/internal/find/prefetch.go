package find

import (
	"context"
	"math"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// maxPrefetch is the maximum number of traces that are read together.
const maxPrefetch = 32

// prefetched holds traces that were read together. The newest matches of a search tend to be in a
// few blocks, which are then decoded once instead of once per trace. Together, the traces take
// about as much memory as a piece. A trace that does not fit is dropped and read when it is needed.
type prefetched struct {
	ids     []otlpdata.TraceID
	lists   [maxPrefetch]spanList // by index in ids
	dropped [maxPrefetch]bool     // taken, or too long
	left    int                   // number of traces that are not dropped
	bytes   int
}

func (a *prefetched) empty() bool { return a.left == 0 }

func (a *prefetched) reset(ids []otlpdata.TraceID) {
	a.ids, a.left, a.bytes = ids, len(ids), 0
	for i := range ids {
		a.lists[i].reset()
		a.dropped[i] = false
	}
}

// take returns the spans of a trace once, or nil if they were not prefetched. They are valid until
// the next reset.
func (a *prefetched) take(id otlpdata.TraceID) *spanList {
	if a.empty() {
		return nil
	}
	for i := range a.ids {
		if a.ids[i] == id && !a.dropped[i] {
			a.drop(i)
			return &a.lists[i]
		}
	}
	return nil
}

func (a *prefetched) drop(i int) {
	a.dropped[i] = true
	a.left--
}

// prefetch reads up to maxPrefetch different traces. Damage is recorded.
func (r *traceReader) prefetch(ctx context.Context, ids []otlpdata.TraceID) error {
	a := &r.prefetched
	r.forgetOrigins()
	r.keys, r.from, r.bounded, r.limit = nil, spanKey{}, false, math.MaxInt
	a.reset(ids)
	defer func() { r.list = &r.own }()
	for src := range r.session.Sources {
		if err := r.prefetchFrom(ctx, src); err != nil {
			a.reset(nil)
			return err
		}
	}
	return nil
}

// prefetchRefs is like prefetch for refs, which may repeat ids. It does nothing for a single trace.
func (r *traceReader) prefetchRefs(ctx context.Context, refs []tracestore.TraceRef) error {
	if len(refs) < 2 {
		return nil
	}
	ids := make([]otlpdata.TraceID, 0, len(refs))
	for _, ref := range refs {
		if !slices.Contains(ids, ref.ID) {
			ids = append(ids, ref.ID)
		}
	}
	return r.prefetch(ctx, ids)
}

func (r *traceReader) prefetchFrom(ctx context.Context, src int) error {
	err := r.session.Decode(ctx, func() error {
		return r.traces(ctx, src, r.prefetched.ids, func(t *rows.Tables, b source.Block, which int, list []int32) error {
			for _, row := range list {
				if err := r.addPrefetched(src, t, b, which, int(row)); err != nil {
					return err
				}
			}
			return r.reserveBuffers()
		})
	})
	return r.session.NoteDamage(src, "traces", 0, err)
}

// addPrefetched adds a row of a trace that was not dropped. A trace that becomes too long is
// dropped.
func (r *traceReader) addPrefetched(src int, t *rows.Tables, b source.Block, which, row int) error {
	a := &r.prefetched
	if a.dropped[which] {
		return nil
	}
	r.list = &a.lists[which]
	before := len(r.list.arena)
	if err := r.add(src, t, b, row); err != nil {
		return r.session.NoteDamage(src, scan.TracePart(a.ids[which]), 1, err)
	}
	if a.bytes += len(r.list.arena) - before; a.bytes > r.session.Options.PieceBytes {
		a.bytes -= len(r.list.arena)
		a.drop(which)
		a.lists[which] = spanList{}
	}
	return nil
}

// traces calls visit with the rows of traces in a source.
func (r *traceReader) traces(
	ctx context.Context, src int, ids []otlpdata.TraceID, visit func(t *rows.Tables, b source.Block, which int, list []int32) error,
) error {
	s := r.session.Sources[src]
	withTables := func(b source.Block, which int, list []int32) error {
		t, err := s.Tables()
		if err != nil {
			return err
		}
		return visit(t, b, which, list)
	}
	if all, ok := s.(source.Traces); ok {
		return all.Traces(ctx, r.tenant, ids, withTables)
	}
	for which := range ids {
		visitOne := func(b source.Block, list []int32) error { return withTables(b, which, list) }
		err := s.Trace(ctx, r.tenant, ids[which], visitOne)
		if err = r.session.NoteDamage(src, scan.TracePart(ids[which]), 0, err); err != nil {
			return err
		}
	}
	return nil
}
