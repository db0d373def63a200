package search

import (
	"context"
	"math"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// maxAhead is how many traces are read at once.
const maxAhead = 32

// ahead is traces that were read before they are asked for. The newest matches of a search tend to lie in a few blocks, which are so
// decoded once and not for each of them. Together they are about as long as a piece; those that go beyond are read when their turn has
// come.
type ahead struct {
	ids   []otlpdata.TraceID
	lists [maxAhead]spanList // by place in ids
	gone  [maxAhead]bool     // was taken, or is too long
	left  int                // that are not gone
	bytes int
}

func (a *ahead) empty() bool { return a.left == 0 }

func (a *ahead) reset(ids []otlpdata.TraceID) {
	a.ids, a.left, a.bytes = ids, len(ids), 0
	for i := range ids {
		a.lists[i].reset()
		a.gone[i] = false
	}
}

// take returns the spans of a trace that was read, once, and nil if it was not. They are valid until the next reset.
func (a *ahead) take(id otlpdata.TraceID) *spanList {
	if a.empty() {
		return nil
	}
	for i := range a.ids {
		if a.ids[i] == id && !a.gone[i] {
			a.drop(i)
			return &a.lists[i]
		}
	}
	return nil
}

func (a *ahead) drop(i int) {
	a.gone[i] = true
	a.left--
}

// readAhead reads up to maxAhead different traces. Damage is noted.
func (r *traceReader) readAhead(ctx context.Context, ids []otlpdata.TraceID) error {
	a := &r.ahead
	r.forgetOrigins()
	r.only, r.from, r.bounded, r.limit = nil, spanKey{}, false, math.MaxInt
	a.reset(ids)
	defer func() { r.list = &r.own }()
	for src := range r.sources {
		if err := r.readAheadIn(ctx, src); err != nil {
			a.reset(nil)
			return err
		}
	}
	return nil
}

func (r *traceReader) readAheadIn(ctx context.Context, src int) error {
	err := r.decode(ctx, func() error {
		return r.traces(ctx, src, r.ahead.ids, func(t *rows.Tables, b source.Block, which int, list []int32) error {
			for _, row := range list {
				if err := r.addAhead(src, t, b, which, int(row)); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return r.damage.note(r.sources[src], "traces", 0, err)
}

// addAhead adds a row of a trace, unless it is gone. A trace that is too long goes, and makes room for others.
func (r *traceReader) addAhead(src int, t *rows.Tables, b source.Block, which, row int) error {
	a := &r.ahead
	if a.gone[which] {
		return nil
	}
	r.list = &a.lists[which]
	before := len(r.list.arena)
	if err := r.add(src, t, b, row); err != nil {
		return r.damage.note(r.sources[src], partOfTrace(a.ids[which]), 1, err)
	}
	if a.bytes += len(r.list.arena) - before; a.bytes > r.engine.options.PieceBytes {
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
	s := r.sources[src]
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
		if err = r.damage.note(s, partOfTrace(ids[which]), 0, err); err != nil {
			return err
		}
	}
	return nil
}
