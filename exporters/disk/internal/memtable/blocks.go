package memtable

import (
	"math"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// block is a run of rows in the order of arrival.
type block struct {
	refs []ref    // by row
	prev []uint32 // by row: 1 + previous row with the same trace hash, 0 if none
	info blockInfo
}

// blockInfo summarizes a block for searches. It may also cover rows that were rolled back: searches
// then skip fewer blocks, but miss nothing.
type blockInfo struct {
	minStart, maxStart              uint64
	shapes                          []source.BlockShape
	texts                           filter // nil: nothing was added
	encoded, incomplete, longArrays bool   // of any row, see rowHints
}

const rowBytes = 8 + 4 // size of refs and prev

func newBlock(size int) *block {
	return &block{refs: make([]ref, size), prev: make([]uint32, size), info: blockInfo{minStart: math.MaxUint64}}
}

// share locates the entry of a shape in a block's list of shapes.
type share struct {
	block uint32 // 1 + the last block in which the shape occurred
	at    uint32 // index of its entry in the list of that block
}

// addRow adds a row that is in the arena.
func (t *Table) addRow(at ref, h *rows.Head, r *rowHints) {
	size := t.options.BlockRows
	b := t.rows / size
	if b == len(t.blocks) {
		t.blocks = append(t.blocks, newBlock(size))
		t.otherBytes += int64(size) * rowBytes
	}
	current := t.blocks[b]
	current.refs[t.rows%size] = at
	info := &current.info
	info.minStart, info.maxStart = min(info.minStart, h.Start), max(info.maxStart, h.Start)
	t.otherBytes += info.addHints(r, size)
	s := &t.shapes[h.Shape].share
	if s.block != uint32(b)+1 {
		s.block, s.at = uint32(b)+1, uint32(len(info.shapes))
		before := cap(info.shapes)
		info.shapes = append(info.shapes, source.BlockShape{Shape: h.Shape})
		t.otherBytes += int64(cap(info.shapes)-before) * blockShapeBytes
	}
	entry := &info.shapes[s.at]
	entry.Longest = max(entry.Longest, source.StepOf(h.Duration()))
	t.rows++
}

// link adds rows, starting with row from, to the index of traces. The rows are not visible yet.
func (t *Table) link(from int, hashes []uint64) {
	size := t.options.BlockRows
	if all := t.linkedBlocks.Load(); all == nil || len(*all) < len(t.blocks) {
		blocks := t.blocks
		t.linkedBlocks.Store(&blocks)
	}
	for i, hash := range hashes {
		row := from + i
		t.traces.link(hash, uint32(row), &t.blocks[row/size].prev[row%size])
	}
}

// dropUnpublished removes the rows that are not visible yet.
func (t *Table) dropUnpublished() {
	t.rows = t.published
	size := t.options.BlockRows
	keep := (t.rows + size - 1) / size
	t.otherBytes -= int64(len(t.blocks)-keep) * int64(size) * rowBytes
	t.blocks = slices.Delete(t.blocks, keep, len(t.blocks))
	for i := range t.shapes {
		// The list of shapes of a removed block starts empty when the block is created again.
		if int(t.shapes[i].share.block) > len(t.blocks) {
			t.shapes[i].share = share{}
		}
	}
}

// blockHints is the part of a blockInfo from which hints (whether a block may hold a text) are
// computed.
type blockHints struct {
	sealed                          bool // the block is full and visible, and no longer changes
	encoded, incomplete, longArrays bool
	shapes                          []source.BlockShape
	texts                           filter // set only if sealed
}

// hints returns the hints of a block. It copies the list of shapes if the list may still change.
func (t *Table) hints(i int) blockHints {
	info := &t.blocks[i].info
	n := blockHints{sealed: (i+1)*t.options.BlockRows <= t.published, encoded: info.encoded, incomplete: info.incomplete,
		longArrays: info.longArrays}
	if n.sealed {
		n.texts, n.shapes = info.texts, info.shapes
	} else {
		n.shapes = slices.Clone(info.shapes)
	}
	return n
}

// describe returns the info of the visible part of a block.
func (t *Table) describe(i int) source.BlockInfo {
	b, size := t.blocks[i], t.options.BlockRows
	n := min(size, t.published-i*size)
	return source.BlockInfo{Rows: n, MinStart: b.info.minStart, MaxStart: b.info.maxStart}
}
