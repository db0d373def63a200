package tombstone

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/namelist"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// evaluation is the result of applying rules to a source. Immutable once it is complete.
type evaluation struct {
	rules     []*Rule             // that hide rows, or may hide rows
	targets   []*candidates       // of fresh rules; kept only if a block was unreadable
	blocks    map[int]*hiddenRows // blocks with hidden rows, and unreadable blocks
	hidden    int                 // number of hidden rows
	unread    int                 // number of unreadable blocks
	hiddenBy  map[uint64]int      // number of rows by the first tombstone that hides them
	shapes    []bool              // by shape: whether a visible row has it; nil: nothing is hidden
	resources []bool              // by resource: whether a visible row has it
	names     *namelist.Lists     // of visible rows; nil: not known, or too large to keep
}

// hiddenRows describes the hidden rows of a block.
type hiddenRows struct {
	count  int
	bits   []uint64 // one bit per row; nil: all rows are hidden, or none
	unread bool     // fresh rules were not applied because the block was unreadable
	// shapes and resources belong to visible rows, hiddenResources only to hidden rows,
	// all distinct. They are empty if all rows are hidden and the block was not read.
	shapes, resources, hiddenResources []uint32
}

func (h *hiddenRows) has(row int) bool { return h.bits[row/64]>>(row%64)&1 == 1 }

func (e *evaluation) complete() bool { return e.unread == 0 }

// evaluate applies fresh rules to a source, in addition to the rules of base, which may be nil.
func evaluate(ctx context.Context, src source.Source, fresh []*Rule, base *evaluation) (*evaluation, error) {
	var targets []*candidates
	for _, r := range fresh {
		c, err := findCandidates(ctx, r, src)
		if err != nil {
			return nil, err
		}
		if c != nil {
			targets = append(targets, c)
		}
	}
	switch {
	case len(targets) > 0:
	case base != nil:
		return base, nil
	default:
		return &evaluation{blocks: map[int]*hiddenRows{}, hiddenBy: map[uint64]int{}}, nil
	}
	t, err := src.Tables()
	if err != nil {
		return nil, err
	}
	infos, err := src.Blocks()
	if err != nil {
		return nil, err
	}
	e := &evaluation{targets: targets, blocks: map[int]*hiddenRows{}, hiddenBy: map[uint64]int{}}
	if base != nil {
		e.rules, e.hidden = slices.Clip(base.rules), base.hidden
		e.blocks, e.hiddenBy = maps.Clone(base.blocks), maps.Clone(base.hiddenBy)
	}
	for i := range infos {
		if err := e.applyToBlock(ctx, src, t, i, &infos[i]); err != nil {
			return nil, err
		}
	}
	for _, c := range e.targets {
		if e.unread > 0 || e.hiddenBy[c.rule.Number] > 0 {
			e.rules = append(e.rules, c.rule)
		}
	}
	if e.unread == 0 {
		e.targets = nil
	}
	err = e.findVocabulary(ctx, src, t, infos)
	return e, err
}

// applyToBlock applies the fresh rules to a block.
func (e *evaluation) applyToBlock(ctx context.Context, src source.Source, t *rows.Tables, number int,
	info *source.BlockInfo) error {
	targets, summary := e.targetsIn(src, number, info)
	if len(targets) == 0 {
		return nil
	}
	before := e.blocks[number]
	if before == nil {
		before = &hiddenRows{}
	}
	if before.count == info.Rows {
		return nil
	}
	// Only the first rule may skip reading the block: if a later one hides all rows, the number of
	// rows that the first one hides still has to be counted.
	if c := targets[0]; c.hidesAll(summary) {
		e.count(c, info.Rows-before.count)
		e.blocks[number] = &hiddenRows{count: info.Rows}
		return nil
	}
	hidden, err := examineBlock(ctx, src, t, number, before, targets, e.count)
	if d := (*source.DamageError)(nil); errors.As(err, &d) && ctx.Err() == nil {
		unread := *before
		unread.unread = true
		e.unread++
		e.blocks[number] = &unread
		return nil
	}
	if err == nil && hidden.count > 0 {
		e.blocks[number] = hidden
	}
	return err
}

// targetsIn returns the targets that may be in a block. Each of them is compared with every row of
// the block, so it pays to exclude most. The shapes of the block are read only if start times alone
// do not exclude all targets.
func (e *evaluation) targetsIn(src source.Source, number int, info *source.BlockInfo) ([]*candidates, blockSummary) {
	summary := blockSummary{BlockInfo: info}
	if !slices.ContainsFunc(e.targets, func(c *candidates) bool { return c.overlaps(info) }) {
		return nil, summary
	}
	summary.shapes, summary.known = src.BlockShapes(nil, number)
	var list []*candidates
	for _, c := range e.targets {
		if c.mayHideIn(summary) {
			list = append(list, c)
		}
	}
	return list, summary
}

func (e *evaluation) count(c *candidates, n int) {
	e.hiddenBy[c.rule.Number] += n
	e.hidden += n
}

// retryBlock examines a block that was unreadable during the evaluation. The result is not stored;
// the next evaluation does that.
func (e *evaluation) retryBlock(ctx context.Context, src source.Source, number int) (*hiddenRows, error) {
	t, err := src.Tables()
	if err != nil {
		return nil, err
	}
	return examineBlock(ctx, src, t, number, e.blocks[number], e.targets, func(*candidates, int) {})
}

// examineBlock reads a block and returns the rows that are hidden by targets or were hidden before.
// It calls count with the number of rows that each target hides.
func examineBlock(ctx context.Context, src source.Source, t *rows.Tables, number int, before *hiddenRows,
	targets []*candidates, count func(c *candidates, n int)) (*hiddenRows, error) {
	b, err := src.Open(ctx, number)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	x := examiner{name: src.Name(), block: b, tables: t, targets: targets}
	if err := x.read(); err != nil {
		return nil, err
	}
	hidden := &hiddenRows{count: before.count, bits: make([]uint64, (b.Len()+63)/64)}
	copy(hidden.bits, before.bits)
	hiddenBy := make([]int, len(targets))
	for row := range b.Len() {
		if hidden.has(row) {
			continue
		}
		i, err := x.hiddenBy(row)
		if err != nil {
			return nil, err
		}
		if i >= 0 {
			hidden.bits[row/64] |= 1 << (row % 64)
			hidden.count++
			hiddenBy[i]++
		}
	}
	for i, n := range hiddenBy {
		if n > 0 {
			count(targets[i], n)
		}
	}
	x.summarize(hidden)
	return hidden, nil
}

// examiner decides which rows of a block are hidden.
type examiner struct {
	name              string // of the source
	block             source.Block
	tables            *rows.Tables
	targets           []*candidates
	shapes, resources []uint32
	starts            []uint64
}

func (x *examiner) read() (err error) {
	if x.shapes, err = x.block.Shapes(); err != nil {
		return err
	}
	if x.starts, err = x.block.Starts(); err != nil {
		return err
	}
	if x.resources, err = x.block.Resources(); err != nil {
		return err
	}
	for row, shape := range x.shapes {
		if int(shape) >= len(x.tables.Shapes) || int(x.resources[row]) >= len(x.tables.Resources) {
			return &source.DamageError{File: x.name, Part: "a block",
				Err: fmt.Errorf("row %d refers to an undefined shape or resource", row)}
		}
	}
	return nil
}

// hiddenBy returns the index of the first target that hides a row, -1 if none does.
func (x *examiner) hiddenBy(row int) (int, error) {
	for i, c := range x.targets {
		if !c.mayHide(x.shapes[row], x.starts[row]) {
			continue
		}
		if c.shapes != nil {
			return i, nil
		}
		var head rows.Head
		if err := x.block.Head(row, &head); err != nil {
			return -1, err
		}
		if c.rule.hides(&x.tables.Shapes[head.Shape], head.Start, &head.TraceID) {
			return i, nil
		}
	}
	return -1, nil
}

// summarize sets the shapes and resources of visible and hidden rows.
func (x *examiner) summarize(h *hiddenRows) {
	shapes, resources, hidden := map[uint32]struct{}{}, map[uint32]struct{}{}, map[uint32]struct{}{}
	for row := range x.shapes {
		if h.has(row) {
			hidden[x.resources[row]] = struct{}{}
			continue
		}
		shapes[x.shapes[row]] = struct{}{}
		resources[x.resources[row]] = struct{}{}
	}
	for r := range resources {
		delete(hidden, r)
	}
	h.shapes = slices.Collect(maps.Keys(shapes))
	h.resources = slices.Collect(maps.Keys(resources))
	h.hiddenResources = slices.Collect(maps.Keys(hidden))
}
