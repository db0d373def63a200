package segment

import (
	"math/bits"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
)

// fragment is a run of rows of one trace in one block.
type fragment struct {
	block, first, rows uint32
	before             uint32 // 1 + the fragment of the trace that was met before; 0: none
}

// fragmentTable tells where the rows of traces are. trace.from is 1 + its last fragment.
type fragmentTable struct {
	traceTable
	fragments []fragment
	at        uint32 // number of the trace of the last fragment
}

// expect makes room for so many traces. Tables that grow leave what is half as large behind each time.
func (t *fragmentTable) expect(traces int) {
	t.list, t.fragments = make([]trace, 0, traces), make([]fragment, 0, traces+traces/16)
	t.slots = make([]uint32, max(len(t.slots), 1<<bits.Len(uint(2*traces))))
}

// add notes the next row, of a block.
func (t *fragmentTable) add(h *rows.Head, block uint32, row int) {
	i := t.traceTable.add(h, 0, 0)
	if n := len(t.fragments); n > 0 && t.at == i {
		if f := &t.fragments[n-1]; f.block == block && int(f.first+f.rows) == row {
			f.rows++
			return
		}
	}
	t.at = i
	of := &t.list[i]
	t.fragments = append(t.fragments, fragment{block, uint32(row), 1, of.from})
	of.from = uint32(len(t.fragments))
}

// sort brings the traces into the order of the segment.
func (t *fragmentTable) sort() { arrange(t.list, t.byStart()) }

// appendOf appends the fragments of a trace in the order in which they were met.
func (t *fragmentTable) appendOf(dst []fragment, of *trace) []fragment {
	for at := of.from; at > 0; at = t.fragments[at-1].before {
		dst = append(dst, t.fragments[at-1])
	}
	slices.Reverse(dst)
	return dst
}
