package tombstone

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Rule is a tombstone prepared for matching rows. Safe for concurrent use.
type Rule struct {
	*Tombstone
	traceSet map[otlpdata.TraceID]struct{} // nil if the tombstone names no traces
}

// NewRule returns the rule of a tombstone, which must no longer be modified.
func NewRule(t *Tombstone) *Rule {
	r := &Rule{Tombstone: t}
	if len(t.Traces) > 0 {
		r.traceSet = make(map[otlpdata.TraceID]struct{}, len(t.Traces))
		for _, id := range t.Traces {
			r.traceSet[id] = struct{}{}
		}
	}
	return r
}

// Overlaps reports whether the rule may hide a row of a source, judged only by the time bounds of
// both. It reads nothing from disk.
func (r *Rule) Overlaps(src source.Source) bool {
	n, oldest, newest := src.Bounds()
	return n > 0 && (r.traceSet != nil || oldest <= r.To && r.From <= newest)
}

// MayHide is a more exact form of Overlaps: it also looks up services in the vocabulary of the
// source and traces in its index.
func (r *Rule) MayHide(ctx context.Context, src source.Source) bool {
	if !r.Overlaps(src) {
		return false
	}
	c, err := findCandidates(ctx, r, src)
	return err != nil || c != nil
}

// coversShape reports whether a rule of a service or time range covers a shape, whatever the start.
func (r *Rule) coversShape(shape *rows.Shape) bool {
	return shape.Tenant == r.Tenant && (r.Service == "" || r.Service == shape.Service)
}

// hides reports whether the rule hides a row. id is used only by rules that name traces.
func (r *Rule) hides(shape *rows.Shape, start uint64, id *otlpdata.TraceID) bool {
	if r.traceSet == nil {
		return r.From <= start && start <= r.To && r.coversShape(shape)
	}
	_, listed := r.traceSet[*id]
	return listed && shape.Tenant == r.Tenant
}

// maxStarts is the maximum number of start times that candidates of a rule with traces hold. With
// more, every block between the first and the last start is read.
const maxStarts = 1 << 20

// candidates narrows down which rows of a source a rule may hide.
type candidates struct {
	rule     *Rule
	starts   []uint64 // with traces: starts of the rows to hide, ascending; nil: not known
	from, to uint64   // bounds of the starts of rows to hide
	shapes   []bool   // without traces: by shape, whether the rule covers it
}

// findCandidates returns the rows of a source that a rule may hide, nil if there are none.
func findCandidates(ctx context.Context, r *Rule, src source.Source) (*candidates, error) {
	if r.traceSet != nil {
		return findTraces(ctx, r, src)
	}
	if !r.mayMatchCatalog(src) {
		return nil, nil
	}
	t, err := src.Tables()
	if err != nil {
		return nil, err
	}
	c := &candidates{rule: r, from: r.From, to: r.To, shapes: make([]bool, len(t.Shapes))}
	for i := range t.Shapes {
		c.shapes[i] = r.coversShape(&t.Shapes[i])
	}
	if !slices.Contains(c.shapes, true) {
		return nil, nil
	}
	return c, nil
}

// mayMatchCatalog reports whether a source may have spans of the services that the rule covers. It
// does not read the vocabulary.
func (r *Rule) mayMatchCatalog(src source.Source) bool {
	c, ok := src.(source.Catalog)
	if !ok {
		return true
	}
	may := false
	err := c.EachService(r.Tenant, r.Service, func(name []byte, _ bool) bool {
		may = r.Service == "" || r.Service == string(name)
		return false
	})
	return err != nil || may
}

func findTraces(ctx context.Context, r *Rule, src source.Source) (*candidates, error) {
	c := &candidates{rule: r}
	for _, id := range r.Traces {
		err := src.Trace(ctx, r.Tenant, id, func(b source.Block, list []int32) error {
			var head rows.Head
			for _, row := range list {
				if err := b.Head(int(row), &head); err != nil {
					return err
				}
				c.starts = append(c.starts, head.Start)
			}
			return nil
		})
		if d := (*source.DamageError)(nil); errors.As(err, &d) && ctx.Err() == nil {
			// Unreadable rows may become readable later, so every block has to be examined.
			return &candidates{rule: r, to: math.MaxUint64}, nil
		}
		if err != nil {
			return nil, err
		}
	}
	if len(c.starts) == 0 {
		return nil, nil
	}
	slices.Sort(c.starts)
	c.from, c.to = c.starts[0], c.starts[len(c.starts)-1]
	if c.starts = slices.Clip(slices.Compact(c.starts)); len(c.starts) > maxStarts {
		c.starts = nil
	}
	return c, nil
}

// blockSummary is what is known about a block without reading its rows.
type blockSummary struct {
	*source.BlockInfo
	shapes []source.BlockShape
	known  bool // whether shapes is known
}

// overlaps reports whether the rule may hide a row of a block, judged by start times.
func (c *candidates) overlaps(b *source.BlockInfo) bool {
	if b.Rows == 0 || b.MaxStart < c.from || b.MinStart > c.to {
		return false
	}
	if c.starts != nil {
		at, _ := slices.BinarySearch(c.starts, b.MinStart)
		return at < len(c.starts) && c.starts[at] <= b.MaxStart
	}
	return true
}

// mayHideIn reports whether the rule may hide a row of a block, judged by start times and shapes.
func (c *candidates) mayHideIn(b blockSummary) bool {
	return c.overlaps(b.BlockInfo) && (c.shapes == nil || !b.known ||
		slices.ContainsFunc(b.shapes, func(s source.BlockShape) bool { return c.coversShape(s.Shape) }))
}

// coversShape reports whether a rule without traces covers a shape.
func (c *candidates) coversShape(shape uint32) bool {
	return int(shape) < len(c.shapes) && c.shapes[shape]
}

// hidesAll reports whether the rule is known to hide all rows of a block.
func (c *candidates) hidesAll(b blockSummary) bool {
	return c.shapes != nil && b.known && c.rule.From <= b.MinStart && b.MaxStart <= c.rule.To &&
		!slices.ContainsFunc(b.shapes, func(s source.BlockShape) bool { return !c.coversShape(s.Shape) })
}

// mayHide reports whether the rule may hide a row. For a rule without traces the result is exact;
// for a rule with traces the caller also has to check the trace id.
func (c *candidates) mayHide(shape uint32, start uint64) bool {
	switch {
	case start < c.from || start > c.to:
		return false
	case c.shapes != nil:
		return c.coversShape(shape)
	case c.starts != nil:
		_, found := slices.BinarySearch(c.starts, start)
		return found
	}
	return true
}
