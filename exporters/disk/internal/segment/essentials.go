package segment

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Approximate sizes in bytes.
const (
	indexPageMemory = int64(unsafe.Sizeof(indexPage{}))
	infoMemory      = int64(unsafe.Sizeof(source.BlockInfo{}))
)

// words looks up the words (texts in the dictionary) of a string column.
type words struct {
	list   []string
	sorted cached[[]uint32] // words in the order of their texts
}

// has reports whether a text is a word.
func (w *words) has(text string) bool {
	sorted, _ := w.sorted.get(func() (*[]uint32, error) {
		order := make([]uint32, len(w.list))
		for i := range order {
			order[i] = uint32(i)
		}
		slices.SortFunc(order, func(a, b uint32) int { return cmp.Compare(w.list[a], w.list[b]) })
		return &order, nil
	}, func() {})
	_, found := slices.BinarySearchFunc(*sorted, text, func(i uint32, t string) int { return cmp.Compare(w.list[i], t) })
	return found
}

// load returns the essentials.
func (s *Segment) load() (*essentials, error) {
	s.cache.touch(s)
	return s.essentials.get(s.readEssentials, s.loaded)
}

// loaded is called when a part of the file was loaded into memory.
func (s *Segment) loaded() { s.cache.update(s) }

func (s *Segment) readEssentials() (*essentials, error) {
	raw, err := s.section(kindTables, maxSection)
	if err != nil {
		return nil, err
	}
	tables, err := readTables(raw)
	if err != nil {
		return nil, s.damage(kindTables.String(), err)
	}
	b := &essentials{keys: map[string][]*words{}}
	if raw, err = s.section(kindLayout, maxSection); err != nil {
		return nil, err
	}
	if b.layout, err = readLayout(tables, raw); err != nil {
		return nil, s.damage(kindLayout.String(), err)
	}
	if b.blockList, err = s.loadBlocks(); err != nil {
		return nil, err
	}
	b.complete()
	return b, nil
}

// loadBlocks returns the list of blocks.
func (s *Segment) loadBlocks() (*blockList, error) {
	return s.blocks.get(func() (*blockList, error) {
		raw, err := s.section(kindBlocks, maxSection)
		if err != nil {
			return nil, err
		}
		l, err := readBlockList(raw, s.dir.begin())
		if err == nil && len(l.blocks) != s.info.Blocks {
			err = fmt.Errorf("list has %d blocks, but the info section says %d", len(l.blocks), s.info.Blocks)
		}
		if err != nil {
			return nil, s.damage(kindBlocks.String(), err)
		}
		return l, nil
	}, s.loaded)
}

func (l *blockList) memory() int64 {
	return int64(len(l.blocks))*int64(unsafe.Sizeof(blockLocation{})) + int64(len(l.filterGroups))*int64(unsafe.Sizeof(filterGroup{}))
}

// begin returns the start of the first section, which is the end of the blocks.
func (d *directory) begin() int64 {
	begin := int64(math.MaxInt64)
	for i := range d {
		if d[i].kind != 0 {
			begin = min(begin, d[i].offset)
		}
	}
	return begin
}

// complete indexes the columns and estimates the memory.
func (b *essentials) complete() {
	const ofColumn, ofWord = 128, 4
	t := b.tables
	for i, c := range t.Columns {
		if c.Kind == otlpdata.ValueString && (c.Place == rows.Attribute || c.Place == rows.EventAttribute) {
			b.keys[c.Key] = append(b.keys[c.Key], &words{list: t.Words[i]})
		}
		b.memory += ofColumn + int64(len(t.Words[i]))*ofWord
	}
	b.memory += t.Memory() + b.block.Memory()
}

// loadPages returns the directory of the trace index.
func (s *Segment) loadPages() ([]indexPage, error) {
	p, err := s.pages.get(func() (*pages, error) {
		raw, err := s.section(kindIndexPages, maxSection)
		if err != nil {
			return nil, err
		}
		list, err := readIndexPages(raw, s.dir[kindIndex].length)
		if err != nil {
			return nil, s.damage(kindIndexPages.String(), err)
		}
		return &pages{list}, nil
	}, func() {})
	if err != nil {
		return nil, err
	}
	return p.list, nil
}

// blockLocation locates a block. The first block follows the header; the others are adjacent.
type blockLocation struct {
	offset int64
	length int
	rows   int
}

// blockList is a section of the file:
//
//	block list      blocks, (length, rows)*,
//	                groups, (0 without a filter, or 1 + lines of the filter)*
//
// All numbers are varints. Without this section no block can be found.
type blockList struct {
	blocks       []blockLocation
	filterGroups []filterGroup // one per groupBlocks blocks
}

// filterGroup locates the filter of a group of consecutive blocks.
type filterGroup struct {
	lines  int   // -1: no filter
	offset int64 // within the filters section
}

func (l *blockList) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(l.blocks)))
	for _, b := range l.blocks {
		dst = binary.AppendUvarint(dst, uint64(b.length))
		dst = binary.AppendUvarint(dst, uint64(b.rows))
	}
	dst = binary.AppendUvarint(dst, uint64(len(l.filterGroups)))
	for _, s := range l.filterGroups {
		dst = binary.AppendUvarint(dst, uint64(s.lines+1))
	}
	return dst
}

// readBlockList decodes the list of a file whose blocks end at limit.
func readBlockList(b []byte, limit int64) (*blockList, error) {
	r := reader{b: b}
	n := r.int()
	if n > len(b) {
		return nil, errTruncated
	}
	l := &blockList{blocks: make([]blockLocation, n)}
	at := int64(headerSize)
	for i := range l.blocks {
		p := blockLocation{offset: at, length: r.int(), rows: r.int()}
		if int64(p.length) > limit-at || p.rows > math.MaxInt32 {
			return nil, cmp.Or(r.err, errors.New("block lies outside the file or has too many rows"))
		}
		at += int64(p.length)
		l.blocks[i] = p
	}
	if m := r.int(); r.err == nil && m != (n+groupBlocks-1)/groupBlocks {
		return nil, errors.New("wrong number of filter groups")
	}
	l.filterGroups = make([]filterGroup, (n+groupBlocks-1)/groupBlocks)
	offset := int64(0)
	for i := range l.filterGroups {
		lines := int(r.id(maxGroupValues)) - 1
		l.filterGroups[i] = filterGroup{lines: lines, offset: offset}
		offset += int64(filterBytes(max(lines, 0)))
	}
	return l, r.end()
}
