package search

import (
	"context"
	"errors"
	"fmt"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// filter evaluates programs on the rows of an open block. It is reused from block to block. Sets of rows are ascending lists.
type filter struct {
	*plan
	ctx          context.Context // of the evaluation of this block
	block        source.Block
	starts, ends []uint64 // nil until asked for, as the next one
	resources    []uint32
	cells        []rows.Cell
	assembler    rows.Assembler
	free         [][]int32 // lists to be used again
}

// use makes b the block whose rows are evaluated, until ctx is done.
func (f *filter) use(ctx context.Context, p *plan, b source.Block) {
	f.ctx, f.plan, f.block = ctx, p, b
	f.starts, f.ends, f.resources = nil, nil, nil
}

// narrow removes the rows on which n does not hold from set.
func (f *filter) narrow(n *node, set []int32) ([]int32, error) {
	switch {
	case n.known == yes:
		return set, nil
	case n.known == no:
		return set[:0], nil
	}
	switch n.kind {
	case oneCond:
		return f.narrowLeaf(n.leaf, set)
	case noneOf:
		return f.subtract(&n.parts[0], set)
	case anyOf:
		return f.unite(n.parts, set)
	}
	var err error
	for i := range n.parts {
		if len(set) == 0 {
			break
		}
		if set, err = f.narrow(&n.parts[i], set); err != nil {
			return nil, err
		}
	}
	return set, nil
}

// subtract removes the rows on which n holds.
func (f *filter) subtract(n *node, set []int32) ([]int32, error) {
	list := append(f.list(), set...)
	defer f.giveBack(list)
	matched, err := f.narrow(n, list)
	if err != nil {
		return nil, err
	}
	return without(set, matched), nil
}

// unite keeps the rows on which a part holds. Each part sees those that no part before it took.
func (f *filter) unite(parts []node, set []int32) ([]int32, error) {
	rest := append(f.list(), set...)
	defer f.giveBack(rest)
	var err error
	for i := range parts {
		if len(rest) == 0 {
			break
		}
		if rest, err = f.subtract(&parts[i], rest); err != nil {
			return nil, err
		}
	}
	return without(set, rest), nil
}

// without removes the rows of other, a part of set, from set.
func without(set, other []int32) []int32 {
	kept := set[:0]
	for _, r := range set {
		if len(other) > 0 && other[0] == r {
			other = other[1:]
			continue
		}
		kept = append(kept, r)
	}
	return kept
}

func (f *filter) list() []int32 {
	if n := len(f.free); n > 0 {
		l := f.free[n-1]
		f.free = f.free[:n-1]
		return l
	}
	return nil
}

func (f *filter) giveBack(l []int32) { f.free = append(f.free, l[:0]) }

func (f *filter) narrowLeaf(l *leaf, set []int32) ([]int32, error) {
	switch {
	case l.duration:
		return f.narrowDuration(l, set)
	case l.parent:
		return f.narrowParent(l, set)
	}
	strings, other, blobs := l.strings, l.other, l.blobs
	if l.cond.asks && !f.held(l.number) {
		strings, blobs = nil, blobs && !l.cond.onlyText
		if !l.unfiltered {
			other = nil
		}
	}
	if l.resource {
		if err := f.readResources(); err != nil {
			return nil, err
		}
	}
	kept := set[:0]
	for _, row := range set {
		if l.cond.Op == tracestore.Like { // which may take milliseconds
			if err := f.ctx.Err(); err != nil {
				return nil, err
			}
		}
		holds, err := f.rowHolds(l, row, strings, other, blobs)
		if err != nil {
			return nil, err
		}
		if holds {
			kept = append(kept, row)
		}
	}
	return kept, nil
}

// rowHolds looks at one value after the other, the cheapest first.
func (f *filter) rowHolds(l *leaf, row int32, strings, other []position, blobs bool) (bool, error) {
	if l.resource {
		id := f.resources[row]
		if int(id) >= len(l.facts.resources.holds) {
			return false, errReference
		}
		if l.facts.resources.holds[id] {
			return true, nil
		}
	}
	for _, p := range strings {
		if holds, err := f.stringHolds(l.cond, row, p); holds || err != nil {
			return holds, err
		}
	}
	for _, p := range other {
		c, err := f.block.Cell(int(row), p.index)
		if err != nil {
			return false, err
		}
		if l.cond.Holds(f.tables.Value(p.column, c)) {
			return true, nil
		}
	}
	if !blobs {
		return false, nil
	}
	s, err := f.span(row)
	if err != nil {
		return false, err
	}
	return tracestore.Match(l.cond.Cond, s), nil
}

// errReference is the error of a row that refers to what the tables do not have. It matches rows.ErrCorrupt.
var errReference = fmt.Errorf("%w: a row refers to what is not defined", rows.ErrCorrupt)

// stringHolds evaluates a condition on a string, once for each word.
func (f *filter) stringHolds(c *cond, row int32, p position) (bool, error) {
	cell, err := f.block.Cell(int(row), p.index)
	if err != nil {
		return false, err
	}
	if cell.Word == 0 {
		return c.Holds(f.value(p.column, cell)), nil
	}
	word := int(cell.Word) - 1
	if word >= len(p.words.memo) {
		return false, errReference
	}
	memo := &p.words.memo[word]
	if *memo == 0 {
		*memo = 1 + uint8(verdictOf(c.Holds(f.value(p.column, cell))))
	}
	return *memo == 1+uint8(yes), nil
}

func (f *filter) narrowDuration(l *leaf, set []int32) ([]int32, error) {
	if err := errors.Join(f.readStarts(), f.readEnds()); err != nil {
		return nil, err
	}
	kept := set[:0]
	for _, row := range set {
		h := rows.Head{Start: f.starts[row], End: f.ends[row]}
		if l.cond.Holds(otlpdata.DoubleValue(float64(h.Duration()))) {
			kept = append(kept, row)
		}
	}
	return kept, nil
}

func (f *filter) narrowParent(l *leaf, set []int32) ([]int32, error) {
	kept := set[:0]
	for _, row := range set {
		var h rows.Head
		if err := f.block.Head(int(row), &h); err != nil {
			return nil, err
		}
		if tracestore.Match(l.cond.Cond, tracestore.Span{Span: &otlpdata.Span{ParentID: h.ParentID}}) {
			kept = append(kept, row)
		}
	}
	return kept, nil
}

// span assembles a whole row. The span is valid until the next call.
func (f *filter) span(row int32) (tracestore.Span, error) {
	var h rows.Head
	s, err := assemble(f.tables, f.block, int(row), &h, &f.cells, &f.assembler)
	if err != nil {
		return tracestore.Span{}, err
	}
	scope := f.tables.Shapes[h.Shape].Scope
	return tracestore.Span{Resource: &f.tables.Resources[h.Resource].Resource, Scope: &f.tables.Scopes[scope], Span: s}, nil
}

// assemble reads a row with all its cells.
func assemble(t *rows.Tables, b source.Block, row int, h *rows.Head, cells *[]rows.Cell, a *rows.Assembler) (*otlpdata.Span, error) {
	if err := b.Head(row, h); err != nil {
		return nil, err
	}
	if int(h.Shape) >= len(t.Shapes) || int(h.Resource) >= len(t.Resources) || !readable(t, &t.Shapes[h.Shape]) {
		return nil, errReference
	}
	var err error
	if *cells, err = b.Cells((*cells)[:0], row); err != nil {
		return nil, err
	}
	return a.Span(t, h, *cells)
}

func (f *filter) readStarts() (err error) {
	if f.starts == nil {
		f.starts, err = f.block.Starts()
	}
	return err
}

func (f *filter) readEnds() (err error) {
	if f.ends == nil {
		f.ends, err = f.block.Ends()
	}
	return err
}

func (f *filter) readResources() (err error) {
	if f.resources == nil {
		f.resources, err = f.block.Resources()
	}
	return err
}
