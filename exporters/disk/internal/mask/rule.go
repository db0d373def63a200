package mask

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/mark"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Rule is a mark as it is looked up. Safe for concurrent use.
type Rule struct {
	*mark.Mark
	traces map[otlpdata.TraceID]struct{}
}

// NewRule returns the rule of a mark, which must not be changed any more.
func NewRule(m *mark.Mark) *Rule {
	r := &Rule{Mark: m}
	if len(m.Traces) > 0 {
		r.traces = make(map[otlpdata.TraceID]struct{}, len(m.Traces))
		for _, id := range m.Traces {
			r.traces[id] = struct{}{}
		}
	}
	return r
}

// MayHit reports whether the rule may hide a span that started within the bounds of a source. It reads nothing.
func (r *Rule) MayHit(src source.Source) bool {
	n, oldest, newest := src.Bounds()
	return n > 0 && (r.traces != nil || oldest <= r.To && r.From <= newest)
}

// MayHide is MayHit with a closer look: at the vocabulary for a service, at the index for traces.
func (r *Rule) MayHide(ctx context.Context, src source.Source) bool {
	if !r.MayHit(src) {
		return false
	}
	h, err := find(ctx, r, src)
	return err != nil || h != nil
}

// covers reports whether the rule hides the spans of a shape that started in time.
func (r *Rule) covers(shape *rows.Shape) bool {
	return shape.Tenant == r.Tenant && (r.Service == "" || r.Service == shape.Service)
}

func (r *Rule) within(start uint64) bool { return r.From <= start && start <= r.To }

// hides reports whether the rule hides a row, given what all rules look at and, for traces only, the id.
func (r *Rule) hides(shape *rows.Shape, start uint64, id *otlpdata.TraceID) bool {
	if r.traces == nil {
		return r.within(start) && r.covers(shape)
	}
	_, listed := r.traces[*id]
	return listed && shape.Tenant == r.Tenant
}

// maxStarts bounds the starts of hidden rows that a rule of traces remembers for a source. Beyond it, every block between the first and the
// last is read.
const maxStarts = 1 << 20

// hit is what a rule may hide in a source.
type hit struct {
	rule     *Rule
	starts   []uint64 // of traces: of the rows to hide, ascending, unless there are too many
	from, to uint64   // bounds of the starts of rows to hide
	shapes   []bool   // of a service or range: by shape, whether the rule covers it
}

// find looks for what a rule may hide. It returns nil where that is nothing.
func find(ctx context.Context, r *Rule, src source.Source) (*hit, error) {
	if r.traces != nil {
		return findTraces(ctx, r, src)
	}
	if !r.inCatalog(src) {
		return nil, nil
	}
	t, err := src.Tables()
	if err != nil {
		return nil, err
	}
	h := &hit{rule: r, from: r.From, to: r.To, shapes: make([]bool, len(t.Shapes))}
	for i := range t.Shapes {
		h.shapes[i] = r.covers(&t.Shapes[i])
	}
	if !slices.Contains(h.shapes, true) {
		return nil, nil
	}
	return h, nil
}

// inCatalog reports whether a source may have spans of the services that the rule covers, without its vocabulary.
func (r *Rule) inCatalog(src source.Source) bool {
	c, ok := src.(source.Catalog)
	if !ok {
		return true
	}
	list, err := c.Services()
	return err != nil || slices.ContainsFunc(list, func(s source.Service) bool {
		return s.Tenant == r.Tenant && (r.Service == "" || r.Service == s.Name)
	})
}

func findTraces(ctx context.Context, r *Rule, src source.Source) (*hit, error) {
	h := &hit{rule: r}
	for _, id := range r.Traces {
		err := src.Trace(ctx, r.Tenant, id, func(b source.Block, list []int32) error {
			var head rows.Head
			for _, row := range list {
				if err := b.Head(int(row), &head); err != nil {
					return err
				}
				h.starts = append(h.starts, head.Start)
			}
			return nil
		})
		if d := (*source.DamageError)(nil); errors.As(err, &d) && ctx.Err() == nil {
			// What cannot be read now may be readable later: look into every block then.
			return &hit{rule: r, to: math.MaxUint64}, nil
		}
		if err != nil {
			return nil, err
		}
	}
	if len(h.starts) == 0 {
		return nil, nil
	}
	slices.Sort(h.starts)
	h.from, h.to = h.starts[0], h.starts[len(h.starts)-1]
	if h.starts = slices.Clip(slices.Compact(h.starts)); len(h.starts) > maxStarts {
		h.starts = nil
	}
	return h, nil
}

// blockZone is what is known of a block.
type blockZone struct {
	*source.BlockInfo
	shapes []source.BlockShape
	known  bool // the shapes are
}

// meets reports whether the rule may hide a row of a block by the times of both.
func (h *hit) meets(b *source.BlockInfo) bool {
	if b.Rows == 0 || b.MaxStart < h.from || b.MinStart > h.to {
		return false
	}
	if h.starts != nil {
		at, _ := slices.BinarySearch(h.starts, b.MinStart)
		return at < len(h.starts) && h.starts[at] <= b.MaxStart
	}
	return true
}

// touches reports whether the rule may hide a row of a block.
func (h *hit) touches(b blockZone) bool {
	return h.meets(b.BlockInfo) && (h.shapes == nil || !b.known ||
		slices.ContainsFunc(b.shapes, func(s source.BlockShape) bool { return h.covers(s.Shape) }))
}

// covers reports whether a rule of a service or a range covers a shape.
func (h *hit) covers(shape uint32) bool { return int(shape) < len(h.shapes) && h.shapes[shape] }

// empties reports whether the rule hides all rows of a block.
func (h *hit) empties(b blockZone) bool {
	return h.shapes != nil && b.known && h.rule.From <= b.MinStart && b.MaxStart <= h.rule.To &&
		!slices.ContainsFunc(b.shapes, func(s source.BlockShape) bool { return !h.covers(s.Shape) })
}

// maybe reports whether the rule hides a row; of a rule of traces, whether it may, and the row's id decides.
func (h *hit) maybe(shape uint32, start uint64) bool {
	switch {
	case start < h.from || start > h.to:
		return false
	case h.shapes != nil:
		return h.covers(shape)
	case h.starts != nil:
		_, found := slices.BinarySearch(h.starts, start)
		return found
	}
	return true
}
