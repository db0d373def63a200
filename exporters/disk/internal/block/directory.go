package block

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// version is that of the format of blocks.
const version = 1

// MaxRows is the greatest number of rows of a block.
const MaxRows = 16384

// MaxCells is the greatest number of varying cells of a block, and bounds with the size of a cell what a reader allocates for them.
const MaxCells = 1 << 22

// ErrCorrupt is matched by the errors about bytes that are no block of the layout.
var ErrCorrupt = errors.New("corrupt block")

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// The head parts in their order, which is part of the format.
const (
	partRuns = iota
	partHigh
	partLow
	partShapes
	partSpans
	partParents
	partExplicit
	partResources
	partNew
	partFirst
	partSteps
	partDurations
	headParts
)

// prefix is the length of what stands before the directory.
const prefix = 8

// entry describes a part: where it is in the block.
type entry struct {
	from, length uint32
	crc          uint32
}

// columnEntry is the part of a column.
type columnEntry struct {
	id uint32
	entry
}

// directory is the head of a block.
type directory struct {
	rows, traces int
	heads        [headParts]entry
	columns      []columnEntry // ids ascend
}

// append appends the directory with its prefix.
func (d *directory) append(dst []byte) []byte {
	at := len(dst)
	dst = append(dst, make([]byte, prefix)...)
	dst = append(dst, version)
	dst = binary.AppendUvarint(dst, uint64(d.rows))
	dst = binary.AppendUvarint(dst, uint64(d.traces))
	for i := range d.heads {
		dst = d.heads[i].append(dst)
	}
	dst = binary.AppendUvarint(dst, uint64(len(d.columns)))
	before := -1
	for i := range d.columns {
		dst = binary.AppendUvarint(dst, uint64(int(d.columns[i].id)-before))
		before = int(d.columns[i].id)
		dst = d.columns[i].append(dst)
	}
	head := dst[at:]
	binary.LittleEndian.PutUint32(head[4:], uint32(len(head)-prefix))
	binary.LittleEndian.PutUint32(head, crc32.Checksum(head[4:], castagnoli))
	return dst
}

func (e *entry) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(e.length))
	return binary.LittleEndian.AppendUint32(dst, e.crc)
}

// read reads the directory of a block. It reuses the memory of d. All parts then lie within block.
func (d *directory) read(block []byte) error {
	if len(block) < prefix || uint64(len(block)) > 1<<32-1 {
		return corrupt("%d bytes", len(block))
	}
	size := binary.LittleEndian.Uint32(block[4:])
	if uint64(size) > uint64(len(block)-prefix) {
		return corrupt("the directory is cut short")
	}
	head := block[:prefix+size]
	if crc32.Checksum(head[4:], castagnoli) != binary.LittleEndian.Uint32(head) {
		return corrupt("checksum of the directory")
	}
	r := dirReader{b: head[prefix:], end: uint64(len(head))}
	if v := r.byte(); v != version {
		return corrupt("version %d", v)
	}
	d.rows, d.traces = int(r.number(MaxRows)), int(r.number(MaxRows))
	for i := range d.heads {
		d.heads[i] = r.entry()
	}
	d.readColumns(&r)
	switch {
	case r.bad || len(r.b) > 0:
		return corrupt("the directory is not well-formed")
	case r.end != uint64(len(block)):
		return corrupt("%d bytes instead of %d", len(block), r.end)
	case d.rows == 0 || d.traces == 0 || d.traces > d.rows:
		return corrupt("%d traces with %d rows", d.traces, d.rows)
	}
	return nil
}

func (d *directory) readColumns(r *dirReader) {
	d.columns = d.columns[:0]
	id := int64(-1)
	for n := r.number(uint64(len(r.b))); n > 0 && !r.bad; n-- {
		step := int64(r.number(1 << 31))
		if id += step; step == 0 || id > 1<<31 {
			r.bad = true
		}
		d.columns = append(d.columns, columnEntry{uint32(id), r.entry()})
	}
}

// dirReader takes a directory apart. After the first failure it returns zeros.
type dirReader struct {
	b   []byte
	end uint64 // of the parts so far, from the begin of the block
	bad bool
}

func (r *dirReader) byte() byte {
	if len(r.b) == 0 {
		r.bad = true
		return 0
	}
	c := r.b[0]
	r.b = r.b[1:]
	return c
}

// number reads a number up to limit.
func (r *dirReader) number(limit uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > limit {
		r.b, r.bad = nil, true
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *dirReader) entry() entry {
	length := r.number(1<<32 - 1)
	if len(r.b) < 4 {
		r.b, r.bad = nil, true
		return entry{}
	}
	e := entry{from: uint32(r.end), length: uint32(length), crc: binary.LittleEndian.Uint32(r.b)}
	r.b = r.b[4:]
	r.end += length
	if r.end > 1<<32-1 {
		r.b, r.bad = nil, true
	}
	return e
}
