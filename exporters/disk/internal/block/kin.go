package block

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

const idLength = 8 // of span ids

// What a row's parent is, if not the number of a row.
const (
	parentNone     int32 = -1 - iota
	parentExplicit       // a span that is not in the trace's rows of the block
)

// Codes of parents.
const (
	codeNone     = 0
	codeExplicit = 1
	codeBefore   = 2 // 2k, k >= 1: k rows before
	codeBehind   = 3 // 2k+3, k >= 0: k rows behind
)

// parentCode returns how the parent of a row is written.
func parentCode(row int, parent int32) uint32 {
	switch {
	case parent == parentNone:
		return codeNone
	case parent == parentExplicit:
		return codeExplicit
	case int(parent) < row:
		return uint32(row-int(parent)) * 2
	}
	return uint32(int(parent)-row)*2 + codeBehind
}

// parentOf undoes parentCode. The result may lie outside of the block.
func parentOf(row int, code uint32) int64 {
	switch {
	case code == codeNone:
		return int64(parentNone)
	case code == codeExplicit:
		return int64(parentExplicit)
	case code%2 == 0:
		return int64(row) - int64(code/2)
	}
	return int64(row) + int64((code-codeBehind)/2)
}

// kin finds parents among the rows of a trace: where these are few, one after the other, else by a hash table of span ids. Its slots hold
// 1 + row; what belongs to an earlier trace is free, so that a table needs no clearing between traces.
type kin struct {
	parents []int32         // by row: the first row with its parent id, or a parent constant
	ids     [fewRows]uint64 // of the rows of a trace that has few
	slots   []int32
	factor  uint64 // random, so that nobody can send ids that collide
}

// fewRows is how many rows a trace has at most whose ids are searched one by one.
const fewRows = 32

func newKin() kin { return kin{factor: rand.Uint64() | 1} }

// resolve fills parents. runs are the numbers of rows of the traces.
func (k *kin) resolve(heads []rows.Head, runs []uint64) {
	size := 1 << bits.Len(uint(2*len(heads)-1))
	k.slots = resize(k.slots, size)
	clear(k.slots)
	k.parents = resize(k.parents, len(heads))
	first := 0
	for _, n := range runs {
		end := first + int(n)
		if n <= fewRows {
			k.resolveFew(heads[first:end], first)
			first = end
			continue
		}
		for i := first; i < end; i++ {
			if slot := k.find(heads, heads[i].SpanID, first); *slot <= int32(first) {
				*slot = int32(i + 1)
			}
		}
		for i := first; i < end; i++ {
			k.parents[i] = k.parent(heads, heads[i].ParentID, first)
		}
		first = end
	}
}

// resolveFew resolves the parents of a trace of few rows, the first of which is given.
func (k *kin) resolveFew(heads []rows.Head, first int) {
	ids := k.ids[:len(heads)]
	for i := range heads {
		ids[i] = binary.LittleEndian.Uint64(heads[i].SpanID[:])
	}
	for i := range heads {
		k.parents[first+i] = parentExplicit
		want := binary.LittleEndian.Uint64(heads[i].ParentID[:])
		if want == 0 {
			k.parents[first+i] = parentNone
			continue
		}
		for j, id := range ids {
			if id == want {
				k.parents[first+i] = int32(first + j)
				break
			}
		}
	}
}

func (k *kin) parent(heads []rows.Head, id otlpdata.SpanID, first int) int32 {
	if id.IsZero() {
		return parentNone
	}
	if slot := *k.find(heads, id, first); slot > int32(first) {
		return slot - 1
	}
	return parentExplicit
}

// find returns the slot of an id in the trace that begins at row first: it holds the row, or is free, which is at most first.
func (k *kin) find(heads []rows.Head, id otlpdata.SpanID, first int) *int32 {
	mask := uint64(len(k.slots) - 1)
	for h := binary.LittleEndian.Uint64(id[:]) * k.factor >> 32; ; h++ {
		slot := &k.slots[h&mask]
		if *slot <= int32(first) || heads[*slot-1].SpanID == id {
			return slot
		}
	}
}
