package block

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// The parent of a row is stored as the distance to the parent's row in the same trace. If the
// parent is elsewhere, its id is stored explicitly. See doc.go.

const idLength = 8 // bytes of a span id

// Values for rows without a parent row. In decoded heads, parentExplicit - i stands for the i-th
// explicit id.
const (
	parentNone     int32 = -1 - iota
	parentExplicit       // the parent is not among the rows of the trace in the block
)

// Codes of parents. The code of a row that is k >= 1 rows before is 2k.
const (
	codeNone     = 0
	codeExplicit = 1
	codeAfter    = 3 // 2k+3, k >= 0: k rows after
)

// parentCode returns the code of the parent of a row.
func parentCode(row int, parent int32) uint32 {
	switch {
	case parent == parentNone:
		return codeNone
	case parent == parentExplicit:
		return codeExplicit
	case int(parent) < row:
		return uint32(row-int(parent)) * 2
	}
	return uint32(int(parent)-row)*2 + codeAfter
}

// parentOf reverts parentCode. The result may lie outside of the block.
func parentOf(row int, code uint32) int64 {
	switch {
	case code == codeNone:
		return int64(parentNone)
	case code == codeExplicit:
		return int64(parentExplicit)
	case code%2 == 0:
		return int64(row) - int64(code/2)
	}
	return int64(row) + int64((code-codeAfter)/2)
}

// parentResolver finds the parents among the rows of a trace, by linear search in short traces and
// with a hash table of span ids otherwise. A slot of the table holds 1 + row; slots with rows of
// earlier traces are free, so that the table need not be cleared between traces.
type parentResolver struct {
	parents []int32               // by row: row of its parent, parentNone or parentExplicit
	ids     [maxLinearRows]uint64 // of the rows of a short trace
	slots   []int32
	factor  uint64 // random, so that senders cannot construct collisions
}

// maxLinearRows is the maximum number of rows of a trace for linear search.
const maxLinearRows = 32

func newParentResolver() parentResolver { return parentResolver{factor: rand.Uint64() | 1} }

// resolve fills parents. runs are the numbers of rows of the traces.
func (p *parentResolver) resolve(heads []rows.Head, runs []uint64) {
	size := 1 << bits.Len(uint(2*len(heads)-1))
	p.slots = resize(p.slots, size)
	clear(p.slots)
	p.parents = resize(p.parents, len(heads))
	first := 0
	for _, n := range runs {
		end := first + int(n)
		if n <= maxLinearRows {
			p.resolveLinear(heads[first:end], first)
			first = end
			continue
		}
		for i := first; i < end; i++ {
			if slot := p.find(heads, heads[i].SpanID, first); *slot <= int32(first) {
				*slot = int32(i + 1)
			}
		}
		for i := first; i < end; i++ {
			p.parents[i] = p.parent(heads, heads[i].ParentID, first)
		}
		first = end
	}
}

// resolveLinear resolves the parents of a short trace whose first row is given.
func (p *parentResolver) resolveLinear(heads []rows.Head, first int) {
	ids := p.ids[:len(heads)]
	for i := range heads {
		ids[i] = binary.LittleEndian.Uint64(heads[i].SpanID[:])
	}
	for i := range heads {
		p.parents[first+i] = parentExplicit
		parent := binary.LittleEndian.Uint64(heads[i].ParentID[:])
		if parent == 0 {
			p.parents[first+i] = parentNone
			continue
		}
		for j, id := range ids {
			if id == parent {
				p.parents[first+i] = int32(first + j)
				break
			}
		}
	}
}

func (p *parentResolver) parent(heads []rows.Head, id otlpdata.SpanID, first int) int32 {
	if id.IsZero() {
		return parentNone
	}
	if slot := *p.find(heads, id, first); slot > int32(first) {
		return slot - 1
	}
	return parentExplicit
}

// find returns the slot of a span id in the trace that starts at row first. The slot is free if its
// value is at most first.
func (p *parentResolver) find(heads []rows.Head, id otlpdata.SpanID, first int) *int32 {
	mask := uint64(len(p.slots) - 1)
	for h := binary.LittleEndian.Uint64(id[:]) * p.factor >> 32; ; h++ {
		slot := &p.slots[h&mask]
		if *slot <= int32(first) || heads[*slot-1].SpanID == id {
			return slot
		}
	}
}
