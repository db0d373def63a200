package aggregate

import (
	"context"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/scan"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// blockSample is the list of blocks to read: all blocks with rows in the window, or some of them,
// evenly spread.
type blockSample struct {
	windows      []scan.Window // by source
	starts       []uint64      // by source: of its first span
	blocks       []sampledBlock
	share        float64 // of the rows in all blocks with rows in the window
	hintsChecked bool    // hints of blocks (which texts they may hold) were checked as far as that is worthwhile
	ruledOut     spread  // blocks of the sample that hints ruled out
	rowStep      int     // every n-th row is examined; 1 unless a single block has more rows than the budget
	blockStep    int     // of each source, the sample has every n-th block; 0 if it was chosen in another way
}

// sampledBlock is a block with rows in the window.
type sampledBlock struct {
	src, block int
	info       *source.BlockInfo
}

// Limits on the choice of blocks if the budget does not suffice for all.
const (
	// maxProbes is the number of blocks whose hints are checked to estimate how many blocks hints
	// rule out.
	maxProbes = 32
	// maxHintShare is the maximum share of rows, in percent, that hints may leave for checking all
	// blocks to be worthwhile.
	maxHintShare = 50
	// The budget may be exceeded by 1/tolerance to avoid sampling.
	tolerance = 64
)

// sampleBlocks lists the blocks that may have rows in the windows. If these have more rows than are
// left in the budget, it leaves out blocks that hints rule out, and then takes every n-th block.
func (a *aggregation) sampleBlocks(ctx context.Context, windows []scan.Window) (*blockSample, error) {
	f, err := a.blocksIn(windows)
	if err != nil {
		return nil, err
	}
	if budget := a.budget(); a.query.Budget.Spans > 0 && countRows(f.blocks) > budget {
		if err := a.excludeByHints(ctx, f, budget); err != nil {
			return nil, err
		}
		f.reduce(budget)
	}
	return f, ctx.Err()
}

// cheapRows is the number of rows that can be counted by their shapes and times in the time that it
// takes to count the attributes of one row.
const cheapRows = 4

// budget returns how many rows may be read.
func (a *aggregation) budget() int {
	rows := a.query.Budget.Spans
	if a.needsShapesOnly() {
		rows *= cheapRows
	}
	return rows - a.spent
}

// needsShapesOnly reports whether the spans are counted in steps by their shapes and times.
func (a *aggregation) needsShapesOnly() bool {
	t, want := &a.targets, &a.want.Groups
	if t.groups == nil || t.facets != nil || t.heat != nil || t.picks != nil || want.Step == 0 || want.Adjusted ||
		want.Measure != tracestore.MeasureNone && want.Of != (tracestore.Field{Place: tracestore.Duration}) {
		return false
	}
	for f := range tracestore.Fields(a.query.Where) {
		if f.Place != tracestore.Duration && !ofSeries(f) {
			return false
		}
	}
	return !slices.ContainsFunc(want.By, func(f tracestore.Field) bool { return !ofSeries(f) })
}

// blocksIn lists the blocks that may have rows in the windows of their sources.
func (a *aggregation) blocksIn(windows []scan.Window) (*blockSample, error) {
	f := &blockSample{windows: windows, starts: make([]uint64, len(windows)), share: 1, rowStep: 1, blockStep: 1}
	for src := range a.session.Sources {
		n, oldest, newest := a.session.Sources[src].Bounds()
		f.starts[src] = oldest
		if !windows[src].Touches(&source.BlockInfo{Rows: n, MinStart: oldest, MaxStart: newest}) ||
			a.where.Excludes(a.session.Sources[src]) {
			continue
		}
		blocks, err := a.session.Blocks(src)
		if err != nil {
			return nil, err
		}
		for i := range blocks {
			if windows[src].Touches(&blocks[i]) {
				f.blocks = append(f.blocks, sampledBlock{src, i, &blocks[i]})
			}
		}
	}
	return f, nil
}

// excludeByHints leaves out blocks that hints rule out, unless there are only few. If there are
// many, it does not check all blocks but about as many as the budget suffices for. That there are
// few is cached while the first source exists, because checking requires the vocabularies.
func (a *aggregation) excludeByHints(ctx context.Context, f *blockSample, budget int) error {
	f.hintsChecked = true
	few := rangeKey{source: a.session.Sources[f.blocks[0].src], first: fewHints}
	if a.counts != nil {
		few.question = a.counts.question
		if a.counts.find(few) != nil {
			return nil
		}
	}
	probes := everyNth(f.blocks, (len(f.blocks)+maxProbes-1)/maxProbes)
	possible, err := a.possibleBlocks(ctx, probes)
	if err != nil {
		return err
	}
	probed, left := countRows(probes), countRows(possible)
	if left*100 > probed*maxHintShare {
		if a.counts != nil {
			a.counts.keep(few, new(rangeCounts))
		}
		return nil
	}
	all := countRows(f.blocks)
	step := int(float64(all) / float64(max(probed, 1)) * float64(left) / float64(budget))
	some := everyNth(f.blocks, min(max(step, 1), len(f.blocks)))
	f.share = float64(countRows(some)) / float64(all)
	f.blockStep = 0
	if f.blocks, err = a.possibleBlocks(ctx, some); err != nil {
		return err
	}
	for i, rest := 0, f.blocks; i < len(some); i++ {
		if len(rest) > 0 && rest[0] == some[i] {
			rest = rest[1:]
			continue
		}
		f.ruledOut.add(0, some[i].info.Rows)
	}
	return nil
}

// possibleBlocks returns the blocks that hints do not rule out.
func (a *aggregation) possibleBlocks(ctx context.Context, blocks []sampledBlock) ([]sampledBlock, error) {
	var out []sampledBlock
	for i := range blocks {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p, err := a.plan(blocks[i].src)
		if err != nil {
			return nil, err
		}
		if p != nil && p.EnterBlock(blocks[i].block) {
			out = append(out, blocks[i])
		}
	}
	return out, nil
}

// reduce leaves out blocks until the others have at most as many rows as the budget, and rows if
// only one block is left.
func (f *blockSample) reduce(budget int) {
	all := countRows(f.blocks)
	if all <= budget+budget/tolerance {
		return
	}
	some, left, step := f.blocks, all, 1
	for next := (all + budget - 1) / budget; len(some) > 1 && left > budget; next++ {
		some, step = f.everyNthOfSource(next), next
		if next > len(f.blocks) { // sources may have one block each, and the same first block
			some, step = everyNth(f.blocks, next), 0
		}
		left = countRows(some)
	}
	f.blockStep *= step
	if len(some) == 0 {
		some, f.blockStep = f.blocks[len(f.blocks)/2:][:1], 0
		left = countRows(some)
	}
	f.blocks = some
	if left > budget {
		f.rowStep = (left + budget - 1) / budget
		left = f.examined(left)
	}
	f.share *= float64(left) / float64(all)
	f.ruledOut.scale(float64(left) / float64(all))
}

// everyNthOfSource returns every n-th block of each source. The choice does not depend on the
// window, so that counts can be kept. The first block depends on the source, so that each block of
// a short source has the same chance.
func (f *blockSample) everyNthOfSource(step int) (some []sampledBlock) {
	for i := range f.blocks {
		if b := &f.blocks[i]; b.block%step == int(f.starts[b.src]*scatter>>32)%step {
			some = append(some, *b)
		}
	}
	return some
}

// scatter is odd and has bits everywhere, so that multiples of it are spread over all numbers.
const scatter = 0x9e3779b97f4a7c15

// examines reports whether a row of a block is examined.
func (f *blockSample) examines(row int) bool { return f.rowStep == 1 || row%f.rowStep == f.rowStep/2 }

// examined returns how many of the first n rows are examined.
func (f *blockSample) examined(n int) int { return (n - f.rowStep/2 + f.rowStep - 1) / f.rowStep }

// everyNth returns every n-th block, at least one.
func everyNth(blocks []sampledBlock, step int) []sampledBlock {
	if step <= 1 {
		return blocks
	}
	some := make([]sampledBlock, 0, len(blocks)/step+1)
	for i := min(step, len(blocks)) / 2; i < len(blocks); i += step {
		some = append(some, blocks[i])
	}
	return some
}

func countRows(blocks []sampledBlock) int {
	n := 0
	for i := range blocks {
		n += blocks[i].info.Rows
	}
	return n
}
