package search

import (
	"context"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// frame is the blocks that an aggregation reads: all that touch the window, or some of them that are spread evenly.
type frame struct {
	windows []window // by source
	blocks  []frameBlock
	share   float64 // of the rows of all blocks that touch the window
	asked   bool    // hints were asked as far as that pays
	// one in so many rows of a block is examined: all, unless a single block has more than the budget.
	one int
}

// frameBlock is a block that touches the window.
type frameBlock struct {
	src, block int
	info       *source.BlockInfo
}

// Of the blocks that a budget does not suffice for.
const (
	// maxProbes is how many are asked for their hints to find out how many hints rule out.
	maxProbes = 32
	// sparse is the part of the rows, in percent, up to which it pays to ask all of them.
	sparse = 50
	// nearly is one in so many rows by which a budget may be exceeded where that spares a share.
	nearly = 64
)

// frame lists the blocks that touch the windows of sources. Where they have more rows than is left of the budget, those are left out that
// hints rule out, and of the others so many by their number alone that the rest is within it.
func (a *aggregator) frame(ctx context.Context, windows []window) (*frame, error) {
	f, err := a.touched(windows)
	if err != nil {
		return nil, err
	}
	if budget := a.query.Budget.Spans - a.spent; a.query.Budget.Spans > 0 && rowsOf(f.blocks) > budget {
		if err := a.siftOut(ctx, f, budget); err != nil {
			return nil, err
		}
		f.reduce(budget)
	}
	return f, ctx.Err()
}

// touched lists the blocks that touch the windows of sources.
func (a *aggregator) touched(windows []window) (*frame, error) {
	f := &frame{windows: windows, share: 1, one: 1}
	for src := range a.sources {
		n, oldest, newest := a.sources[src].Bounds()
		if !windows[src].touches(&source.BlockInfo{Rows: n, MinStart: oldest, MaxStart: newest}) {
			continue
		}
		blocks, err := a.blocksOf(src)
		if err != nil {
			return nil, err
		}
		for i := range blocks {
			if windows[src].touches(&blocks[i]) {
				f.blocks = append(f.blocks, frameBlock{src, i, &blocks[i]})
			}
		}
	}
	return f, nil
}

// siftOut leaves out what hints rule out, unless these are few blocks. Where many are, it does not ask for the hints of all the others, but
// of as many as the budget suffices for, about.
func (a *aggregator) siftOut(ctx context.Context, f *frame, budget int) error {
	probes := spread(f.blocks, (len(f.blocks)+maxProbes-1)/maxProbes)
	possible, err := a.possible(ctx, probes)
	if err != nil {
		return err
	}
	f.asked = true
	probed, left := rowsOf(probes), rowsOf(possible)
	if left*100 > probed*sparse {
		return nil
	}
	all := rowsOf(f.blocks)
	step := int(float64(all) / float64(max(probed, 1)) * float64(left) / float64(budget))
	some := spread(f.blocks, min(max(step, 1), len(f.blocks)))
	f.share = float64(rowsOf(some)) / float64(all)
	f.blocks, err = a.possible(ctx, some)
	return err
}

// possible returns those of some blocks that hints do not rule out.
func (a *aggregator) possible(ctx context.Context, blocks []frameBlock) ([]frameBlock, error) {
	var out []frameBlock
	for i := range blocks {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p, err := a.plan(blocks[i].src)
		if err != nil {
			return nil, err
		}
		if p != nil && p.enter(blocks[i].block) {
			out = append(out, blocks[i])
		}
	}
	return out, nil
}

// reduce leaves out blocks until the others have no more rows than the budget, and rows if there is only one block.
func (f *frame) reduce(budget int) {
	all := rowsOf(f.blocks)
	if all <= budget+budget/nearly {
		return
	}
	some, left := f.blocks, all
	for step := min((all+budget-1)/budget, len(f.blocks)); len(some) > 1 && left > budget; step++ {
		some = spread(f.blocks, step)
		left = rowsOf(some)
	}
	f.blocks = some
	if left > budget {
		f.one = (left + budget - 1) / budget
		left = f.examined(left)
	}
	f.share *= float64(left) / float64(all)
}

// examines reports whether a row of a block is examined.
func (f *frame) examines(row int) bool { return f.one == 1 || row%f.one == f.one/2 }

// examined returns how many of the first n rows are examined.
func (f *frame) examined(n int) int { return (n - f.one/2 + f.one - 1) / f.one }

// spread returns one of so many blocks, no less than one in all.
func spread(blocks []frameBlock, step int) []frameBlock {
	if step <= 1 {
		return blocks
	}
	some := make([]frameBlock, 0, len(blocks)/step+1)
	for i := min(step, len(blocks)) / 2; i < len(blocks); i += step {
		some = append(some, blocks[i])
	}
	return some
}

func rowsOf(blocks []frameBlock) int {
	n := 0
	for i := range blocks {
		n += blocks[i].info.Rows
	}
	return n
}
