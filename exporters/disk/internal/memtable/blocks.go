package memtable

import (
	"math"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// block is a run of rows in the order in which they came.
type block struct {
	refs []ref    // by row
	prev []uint32 // by row: 1 + number of the row before with the same trace hash, 0 if none
	info blockInfo
}

// blockInfo is what searches know of a block. It may tell of rows that were taken back, which only makes it less sharp.
type blockInfo struct {
	minStart, maxStart uint64
	shapes             []source.BlockShape
	texts              filter // nil: nothing was added
	blobs, opaque      bool   // of any row, see remarks
}

const rowBytes = 8 + 4 // of refs and prev

func newBlock(size int) *block {
	return &block{refs: make([]ref, size), prev: make([]uint32, size), info: blockInfo{minStart: math.MaxUint64}}
}

// share is where a block counts a shape.
type share struct {
	block uint32 // 1 + the last block in which the shape occurred
	at    uint32 // its place in that block's list
}

// addRow adds a row that was put into the arena.
func (t *Table) addRow(at ref, h *rows.Head, r *remarks) {
	size := t.options.BlockRows
	b := t.rows / size
	if b == len(t.blocks) {
		t.blocks = append(t.blocks, newBlock(size))
		t.grown += int64(size) * rowBytes
	}
	current := t.blocks[b]
	current.refs[t.rows%size] = at
	info := &current.info
	info.minStart, info.maxStart = min(info.minStart, h.Start), max(info.maxStart, h.Start)
	t.grown += info.remark(r, size)
	s := &t.shapes[h.Shape].share
	if s.block != uint32(b)+1 {
		s.block, s.at = uint32(b)+1, uint32(len(info.shapes))
		before := cap(info.shapes)
		info.shapes = append(info.shapes, source.BlockShape{Shape: h.Shape})
		t.grown += int64(cap(info.shapes)-before) * blockShapeBytes
	}
	entry := &info.shapes[s.at]
	entry.Longest = max(entry.Longest, source.StepOf(h.Duration()))
	t.rows++
}

// link makes the rows from a number on findable by their trace. They are not visible yet.
func (t *Table) link(from int, hashes []uint64) {
	size := t.options.BlockRows
	if all := t.linked.Load(); all == nil || len(*all) < len(t.blocks) {
		blocks := t.blocks
		t.linked.Store(&blocks)
	}
	for i, hash := range hashes {
		row := from + i
		t.traces.link(hash, uint32(row), &t.blocks[row/size].prev[row%size])
	}
}

// takeBack removes the rows that are not visible yet.
func (t *Table) takeBack() {
	t.rows = t.published
	size := t.options.BlockRows
	keep := (t.rows + size - 1) / size
	t.grown -= int64(len(t.blocks)-keep) * int64(size) * rowBytes
	t.blocks = slices.Delete(t.blocks, keep, len(t.blocks))
	for i := range t.shapes {
		// The next row in a block that is new again must enter the list of shapes.
		if int(t.shapes[i].share.block) > len(t.blocks) {
			t.shapes[i].share = share{}
		}
	}
}

// blockNotes is the part of a block's info that hints use.
type blockNotes struct {
	sealed        bool // all rows are visible, so that nothing changes any more
	blobs, opaque bool
	shapes        []source.BlockShape
	texts         filter // only if sealed
}

// notes returns what hints use. The list of shapes is copied where it may still change.
func (t *Table) notes(i int) blockNotes {
	info := &t.blocks[i].info
	n := blockNotes{sealed: (i+1)*t.options.BlockRows <= t.published, blobs: info.blobs, opaque: info.opaque}
	if n.sealed {
		n.texts, n.shapes = info.texts, info.shapes
	} else {
		n.shapes = slices.Clone(info.shapes)
	}
	return n
}

// describe returns the visible part of a block.
func (t *Table) describe(i int) source.BlockInfo {
	b, size := t.blocks[i], t.options.BlockRows
	n := min(size, t.published-i*size)
	return source.BlockInfo{Rows: n, MinStart: b.info.minStart, MaxStart: b.info.maxStart}
}
