package aggregate

import (
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// A sample of many sources with one large block each, which all begin at the same time, is one
// block.
func TestReduceShortSources(t *testing.T) {
	for _, start := range []uint64{0, 1, 1 << 60} {
		f := &blockSample{share: 1, rowStep: 1, blockStep: 1}
		const sources, rows, budget = 5, 30, 7
		for src := range sources {
			f.starts = append(f.starts, start)
			f.blocks = append(f.blocks, sampledBlock{src, 0, &source.BlockInfo{Rows: rows}})
		}
		f.reduce(budget)
		if len(f.blocks) != 1 || f.examined(rows) > budget || f.share > float64(budget)/(sources*rows) || f.blockStep != 0 {
			t.Errorf("start %d: %d blocks, share %g, rowStep %d, blockStep %d", start, len(f.blocks), f.share, f.rowStep, f.blockStep)
		}
	}
}
