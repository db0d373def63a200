package block

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// version is the version of the block format.
const version = 1

// MaxRows is the maximum number of rows of a block.
const MaxRows = 16384

// MaxCells is the maximum number of varying cells of a block. It bounds the memory that a reader
// allocates for them.
const MaxCells = 1 << 22

// ErrCorrupt matches errors about bytes that are not a valid block of the layout.
var ErrCorrupt = errors.New("corrupt block")

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCorrupt, fmt.Sprintf(format, args...))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// The head parts. Their order is part of the file format.
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

// prefix is the number of bytes before the directory.
const prefix = 8

// entry locates a part in the block.
type entry struct {
	from, length uint32
	crc          uint32
}

// columnEntry is the part of a column.
type columnEntry struct {
	id uint32
	entry
}

// directory lists the parts of a block.
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

// read decodes the directory of a block and checks that all parts lie within the block. It reuses
// the memory of d.
func (d *directory) read(block []byte) error {
	if len(block) < prefix || uint64(len(block)) > 1<<32-1 {
		return corrupt("invalid length of %d bytes", len(block))
	}
	size := binary.LittleEndian.Uint32(block[4:])
	if uint64(size) > uint64(len(block)-prefix) {
		return corrupt("truncated directory")
	}
	head := block[:prefix+size]
	if crc32.Checksum(head[4:], castagnoli) != binary.LittleEndian.Uint32(head) {
		return corrupt("checksum mismatch in the directory")
	}
	r := dirReader{b: head[prefix:], end: uint64(len(head))}
	if v := r.byte(); v != version {
		return corrupt("unknown version %d", v)
	}
	d.rows, d.traces = int(r.number(MaxRows)), int(r.number(MaxRows))
	for i := range d.heads {
		d.heads[i] = r.entry()
	}
	d.readColumns(&r)
	switch {
	case r.bad || len(r.b) > 0:
		return corrupt("malformed directory")
	case r.end != uint64(len(block)):
		return corrupt("%d bytes, want %d", len(block), r.end)
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

// dirReader decodes a directory. After the first failure it returns zero values.
type dirReader struct {
	b   []byte
	end uint64 // end of the last part that was read, from the start of the block
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

// number reads a number that must not exceed limit.
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
