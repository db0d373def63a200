package segment

import (
	"context"
	"errors"
	"fmt"

	"github.com/tracing-backend/tracing/exporters/disk/internal/block"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Bounds returns the number of rows and the bounds of their starts.
func (s *Segment) Bounds() (rows int, minStart, maxStart uint64) {
	return s.info.Rows, s.info.MinStart, s.info.MaxStart
}

// Tables returns the vocabulary: the definitions that the rows refer to.
func (s *Segment) Tables() (*rows.Tables, error) {
	b, err := s.load()
	if err != nil {
		return nil, err
	}
	return b.tables, nil
}

// Blocks describes the blocks. If the zones are damaged, time bounds and shapes are unknown.
func (s *Segment) Blocks() ([]source.BlockInfo, error) {
	s.cache.touch(s)
	b, err := s.loadBlocks()
	if err != nil {
		return nil, err
	}
	return s.loadZones(b).list, nil
}

// Open reads a block with a single read. Its strings stay valid after Close.
func (s *Segment) Open(ctx context.Context, number int) (source.Block, error) {
	b, err := s.load()
	if err != nil {
		return nil, err
	}
	return s.openBlock(ctx, b, number)
}

// openBlock is an open block with its read buffer.
type openBlock struct {
	*block.Block
	segment *Segment
	buf     *[]byte
}

// Close releases the memory for reuse.
func (o *openBlock) Close() {
	if o.buf == nil {
		return
	}
	o.Block.Close()
	o.segment.release(o.buf)
	o.buf = nil
}

// buffer returns n bytes, which the caller must return with release.
func (s *Segment) buffer(n int) *[]byte {
	buf, ok := s.scratch.buffers.Get().(*[]byte)
	if !ok {
		buf = new([]byte)
	}
	if cap(*buf) < n {
		*buf = make([]byte, n)
	}
	*buf = (*buf)[:n]
	return buf
}

func (s *Segment) release(buf *[]byte) {
	if cap(*buf) <= maxBuffer {
		s.scratch.buffers.Put(buf)
	}
}

func (s *Segment) openBlock(ctx context.Context, b *essentials, number int) (*openBlock, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if number < 0 || number >= len(b.blocks) {
		return nil, fmt.Errorf("segment %s has no block %d", s.name, number)
	}
	p := b.blocks[number]
	buf := s.buffer(p.length)
	if err := s.readAt(*buf, p.offset); err != nil {
		s.release(buf)
		return nil, s.blockDamage(b, number, err)
	}
	o, err := s.scratch.pool.Open(b.block, *buf, s.name, number)
	if err == nil && o.Len() != p.rows {
		err = fmt.Errorf("block has %d rows, but the block list says %d", o.Len(), p.rows)
		o.Close()
	}
	if err != nil {
		s.release(buf)
		return nil, s.blockDamage(b, number, err)
	}
	return &openBlock{Block: o, segment: s, buf: buf}, nil
}

// blockDamage returns the error for an unreadable block, with its number of rows from the list of
// blocks.
func (s *Segment) blockDamage(b *essentials, number int, err error) error {
	var d *source.DamageError
	if errors.As(err, &d) {
		err = d.Err
	}
	return &source.DamageError{File: s.name, Part: fmt.Sprintf("block %d", number), Rows: b.blocks[number].rows, Err: err}
}

// Constant returns the cell that all rows of a shape have at a position, if it is the same in all.
func (s *Segment) Constant(shape uint32, position int) (rows.Cell, bool) {
	b, err := s.essentials.get(s.readEssentials, s.loaded) // called too often for Cache.touch
	if err != nil {
		return rows.Cell{}, false
	}
	return b.block.Constant(shape, position)
}

// Words returns the dictionary of a string column. It is complete if all varying cells are words.
func (s *Segment) Words(column uint32) (list []string, complete bool) {
	b, err := s.load()
	if err != nil {
		return nil, false
	}
	n := b.words[column]
	return b.tables.Words[column][:n:n], !b.inline[column]
}

// filterProbe is a filter lookup and its result.
type filterProbe struct {
	key, text string
	group     int
	may       bool
}

// HoldsIntegers reports whether the filters hold integers.
func (s *Segment) HoldsIntegers() bool {
	b, err := s.load()
	return err == nil && b.integers
}

// HoldsElements reports whether the filters hold the elements of arrays.
func (s *Segment) HoldsElements() bool {
	b, err := s.load()
	return err == nil && b.elements
}

// MayHold reports whether a row of the block may have an attribute with the given key and text. It
// covers string cells, cells of arrays and, for values of any kind, the attributes in encoded cells
// (extra attributes, events and links). It returns true if data is damaged.
func (s *Segment) MayHold(number int, key, text string) bool {
	b, err := s.load()
	if err != nil {
		return true
	}
	// The blocks of a group are usually looked up one after the other.
	at := number / groupBlocks
	if p := s.lastProbe.Load(); p != nil && p.group == at && p.text == text && p.key == key {
		return p.may
	}
	may := s.mayHold(b, at, key, text)
	s.lastProbe.Store(&filterProbe{key: key, text: text, group: at, may: may})
	return may
}

func (s *Segment) mayHold(b *essentials, at int, key, text string) bool {
	for _, w := range b.keys[key] {
		if w.has(text) {
			return true
		}
	}
	if at >= len(b.filterGroups) {
		return true
	}
	n := b.filterGroups[at].lines
	if n <= 0 {
		return n < 0
	}
	may := s.inFilter(b, at, keyHash(key), text)
	if !may && b.longArrays {
		may = s.inFilter(b, at, keyHash(key), otlpdata.LongArray)
	}
	return may
}

// inFilter tests the filter of a group.
func (s *Segment) inFilter(b *essentials, at int, key uint64, text string) bool {
	n := b.filterGroups[at].lines
	hash := valueHash(key, text)
	line := lineOf(hash, n)
	from, to := pageOf(line, n)
	e := &s.dir[kindFilters]
	offset := b.filterGroups[at].offset + int64(from)
	if offset+int64(to-from) > e.length {
		return true
	}
	page := s.buffer(to - from)
	defer s.release(page)
	return s.readAt(*page, e.offset+offset) != nil || testPage(*page, hash, line)
}
