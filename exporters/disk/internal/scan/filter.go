package scan

import (
	"context"
	"errors"
	"strings"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Filter evaluates programs on the rows of an open block. It is reused from block to block. Sets of
// rows are ascending lists. It is not safe for concurrent use.
type Filter struct {
	Plan         *Plan
	ctx          context.Context // ends the evaluation of this block
	Block        source.Block
	Starts, Ends []uint64 // nil until loaded, like Resources
	Resources    []uint32
	cells        []rows.Cell
	assembler    rows.Assembler
	free         [][]int32 // lists for reuse
}

// SetBlock makes b the block whose rows are evaluated until ctx ends.
func (f *Filter) SetBlock(ctx context.Context, p *Plan, b source.Block) {
	f.ctx, f.Plan, f.Block = ctx, p, b
	f.Starts, f.Ends, f.Resources = nil, nil, nil
}

// Narrow removes the rows that do not match the program from set, in place.
func (f *Filter) Narrow(pr *Program, set []int32) ([]int32, error) { return f.narrow(&pr.root, set) }

// narrow removes the rows for which n does not hold from set.
func (f *Filter) narrow(n *node, set []int32) ([]int32, error) {
	switch {
	case n.known == yes:
		return set, nil
	case n.known == no:
		return set[:0], nil
	}
	switch n.kind {
	case condExpr:
		return f.narrowLeaf(n.leaf, set)
	case notExpr:
		return f.subtract(&n.parts[0], set)
	case orExpr:
		return f.union(n.parts, set)
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

// subtract removes the rows for which n holds.
func (f *Filter) subtract(n *node, set []int32) ([]int32, error) {
	list := append(f.getList(), set...)
	defer f.putList(list)
	matched, err := f.narrow(n, list)
	if err != nil {
		return nil, err
	}
	return without(set, matched), nil
}

// union keeps the rows for which any part holds. Each part is evaluated for the rows that no part
// before it kept.
func (f *Filter) union(parts []node, set []int32) ([]int32, error) {
	rest := append(f.getList(), set...)
	defer f.putList(rest)
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

// without removes the rows of other, a subset of set, from set.
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

func (f *Filter) getList() []int32 {
	if n := len(f.free); n > 0 {
		l := f.free[n-1]
		f.free = f.free[:n-1]
		return l
	}
	return nil
}

func (f *Filter) putList(l []int32) { f.free = append(f.free, l[:0]) }

func (f *Filter) narrowLeaf(l *leaf, set []int32) ([]int32, error) {
	switch {
	case l.duration:
		return f.narrowDuration(l, set)
	case l.parent:
		return f.narrowParent(l, set)
	}
	strings, other, encoded := l.strings, l.other, l.encoded
	if l.cond.hasFilterText && !f.Plan.mayHold(l.number) {
		strings, encoded = nil, encoded && !f.Plan.filtersEncoded(l.cond)
		if !l.unfiltered {
			other = nil
		}
	}
	if l.resource {
		if err := f.LoadResources(); err != nil {
			return nil, err
		}
	}
	kept := set[:0]
	for _, row := range set {
		if l.cond.Op == tracestore.Like { // one match may take milliseconds
			if err := f.ctx.Err(); err != nil {
				return nil, err
			}
		}
		holds, err := f.rowHolds(l, row, strings, other, encoded)
		if err != nil {
			return nil, err
		}
		if holds {
			kept = append(kept, row)
		}
	}
	if l.cond.Op == tracestore.Like {
		return kept, f.ctx.Err()
	}
	return kept, nil
}

// rowHolds evaluates the values one after the other, the cheapest first.
func (f *Filter) rowHolds(l *leaf, row int32, strings, other []position, encoded bool) (bool, error) {
	if l.resource {
		id := f.Resources[row]
		if int(id) >= len(l.facts.resources.holds) {
			return false, ErrReference
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
		c, err := f.Block.Cell(int(row), p.index)
		if err != nil {
			return false, err
		}
		if l.cond.Holds(f.Plan.Tables.Value(p.column, c)) {
			return true, nil
		}
	}
	if !encoded {
		return false, nil
	}
	if may, err := f.MayEncode(l.cond.Field, row, l.blobs); !may || err != nil {
		return false, err
	}
	s, err := f.Span(row)
	if err != nil {
		return false, err
	}
	return tracestore.Match(l.cond.Cond, s), nil
}

// MayEncode reports whether one of the given cells of a row, which hold encoded fields, may hold a
// value of a field. For an attribute, its key must occur in the cell.
func (f *Filter) MayEncode(field tracestore.Field, row int32, cells []int) (bool, error) {
	if !field.Place.HasKey() || field.Key == "" || field.Key == otlpdata.FlagsAttribute { // encoded without its key
		return true, nil
	}
	for _, position := range cells {
		c, err := f.Block.Cell(int(row), position)
		if err != nil || strings.Contains(c.Data, field.Key) {
			return true, err
		}
	}
	return false, nil
}

// stringHolds evaluates a condition on a string, once for each word.
func (f *Filter) stringHolds(c *cond, row int32, p position) (bool, error) {
	cell, err := f.Block.Cell(int(row), p.index)
	if err != nil {
		return false, err
	}
	if cell.Word == 0 {
		return c.Holds(f.Plan.Value(p.column, cell)), nil
	}
	word := int(cell.Word) - 1
	if word >= len(p.words.memo) {
		return false, ErrReference
	}
	memo := &p.words.memo[word]
	if *memo == 0 {
		*memo = 1 + uint8(verdictOf(c.Holds(f.Plan.Value(p.column, cell))))
	}
	return *memo == 1+uint8(yes), nil
}

func (f *Filter) narrowDuration(l *leaf, set []int32) ([]int32, error) {
	if err := errors.Join(f.LoadStarts(), f.LoadEnds()); err != nil {
		return nil, err
	}
	kept := set[:0]
	for _, row := range set {
		h := rows.Head{Start: f.Starts[row], End: f.Ends[row]}
		if l.cond.Holds(otlpdata.DoubleValue(float64(h.Duration()))) {
			kept = append(kept, row)
		}
	}
	return kept, nil
}

func (f *Filter) narrowParent(l *leaf, set []int32) ([]int32, error) {
	kept := set[:0]
	for _, row := range set {
		holds, err := f.parentHolds(l, int(row))
		if err != nil {
			return nil, err
		}
		if holds {
			kept = append(kept, row)
		}
	}
	return kept, nil
}

func (f *Filter) parentHolds(l *leaf, row int) (bool, error) {
	if l.cond.Op == tracestore.Exists {
		return f.Block.HasParent(row)
	}
	var h rows.Head
	if err := f.Block.Head(row, &h); err != nil {
		return false, err
	}
	return tracestore.Match(l.cond.Cond, tracestore.Span{Span: &otlpdata.Span{ParentID: h.ParentID}}), nil
}

// Span assembles a whole row. The span is valid until the next call.
func (f *Filter) Span(row int32) (tracestore.Span, error) {
	var h rows.Head
	s, err := Assemble(f.Plan.Tables, f.Block, int(row), &h, &f.cells, &f.assembler)
	if err != nil {
		return tracestore.Span{}, err
	}
	scope := f.Plan.Tables.Shapes[h.Shape].Scope
	return tracestore.Span{Resource: &f.Plan.Tables.Resources[h.Resource].Resource, Scope: &f.Plan.Tables.Scopes[scope], Span: s}, nil
}

// LoadStarts reads Starts unless they are already loaded.
func (f *Filter) LoadStarts() (err error) {
	if f.Starts == nil {
		f.Starts, err = f.Block.Starts()
	}
	return err
}

// LoadEnds reads Ends unless they are already loaded.
func (f *Filter) LoadEnds() (err error) {
	if f.Ends == nil {
		f.Ends, err = f.Block.Ends()
	}
	return err
}

// LoadResources reads Resources unless they are already loaded.
func (f *Filter) LoadResources() (err error) {
	if f.Resources == nil {
		f.Resources, err = f.Block.Resources()
	}
	return err
}
