package segment

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// The trace index maps a hash of tenant and trace id to the blocks of the trace. Different traces
// may have the same hash; the ids in the block decide. A trace that was cut has an entry for each
// of its blocks.
//
//	trace index            page*
//	page                   CRC-32C of the rest [4], (hash - preceding hash, block)*
//	                       preceding hash of the first entry: from the directory
//	trace index directory  pages, (first hash - preceding page's first hash, length, entries)*
//
// All numbers but the checksum are varints. A hash is the upper 40 bits of XXH64 of the id [16]
// followed by the tenant.
//
// The parts of traces (see source.TracePart) are in two more sections:
//
//	trace parts            page*, one per page of the trace index, with the same entries
//	page                   CRC-32C of the rest [4], columns or a zstd frame of them, whichever is
//	                       shorter
//	columns                start [entries], duration [entries], root [2 * entries]
//	trace parts directory  pages, (length of page)*
//
// A start is the source.Step from the earliest start of the block to the earliest start of the
// trace's rows in the block. A duration is the step from there to the latest end, or 255 if it is
// unknown. A root is a source.PartRoot, or 0 if it is unknown or does not fit.

// posting is an entry of the trace index, with the part of the trace.
type posting struct {
	at              uint64 // the hash, and the block in the lowest bits
	start, duration source.Step
	root            uint16
}

const blockBits = 64 - source.TraceHashBits

func newPosting(hash uint64, block int) posting { return posting{at: hash<<blockBits | uint64(block)} }

func (p *posting) hash() uint64  { return p.at >> blockBits }
func (p *posting) block() uint64 { return p.at & (1<<blockBits - 1) }

// indexPage is an entry of the directory of the trace index.
type indexPage struct {
	first   uint64 // hash
	offset  int64  // within the section
	length  int
	entries int
}

// indexSections are the encoded sections of the trace index.
type indexSections struct{ pages, directory, parts, partsDirectory []byte }

// newIndexSections encodes the trace index. It sorts postings. zip may be nil.
func newIndexSections(postings []posting, zip *compressor) (s indexSections) {
	slices.SortFunc(postings, func(a, b posting) int { return cmp.Compare(a.at, b.at) })
	count, before := 0, uint64(0)
	var lines, partLines []byte
	for len(postings) > 0 {
		from, n, hash := len(s.pages), 0, postings[0].hash()
		s.pages = append(s.pages, 0, 0, 0, 0)
		for n < len(postings) && len(s.pages)-from < pageBytes-2*binary.MaxVarintLen32 {
			s.pages = binary.AppendUvarint(s.pages, postings[n].hash()-hash)
			s.pages = binary.AppendUvarint(s.pages, postings[n].block())
			hash = postings[n].hash()
			n++
		}
		binary.LittleEndian.PutUint32(s.pages[from:], checksum(s.pages[from+4:]))
		lines = binary.AppendUvarint(lines, postings[0].hash()-before)
		lines = binary.AppendUvarint(lines, uint64(len(s.pages)-from))
		lines = binary.AppendUvarint(lines, uint64(n))
		from = len(s.parts)
		s.parts = appendPartsPage(s.parts, postings[:n], zip)
		partLines = binary.AppendUvarint(partLines, uint64(len(s.parts)-from))
		before = postings[0].hash()
		postings = postings[n:]
		count++
	}
	s.directory = append(binary.AppendUvarint(nil, uint64(count)), lines...)
	s.partsDirectory = append(binary.AppendUvarint(nil, uint64(count)), partLines...)
	return s
}

// readIndexPages decodes the directory of an index section of the given length.
func readIndexPages(b []byte, length int64) ([]indexPage, error) {
	r := reader{b: b}
	n := r.int()
	if n > len(b) {
		return nil, errTruncated
	}
	pages := make([]indexPage, 0, n)
	var p indexPage
	for range n {
		p.first += r.uvarint()
		p.offset += int64(p.length)
		p.length, p.entries = r.int(), r.int()
		if p.length < 4 || p.length > 2*pageBytes || p.offset+int64(p.length) > length {
			return nil, cmp.Or(r.err, errors.New("page lies outside the trace index or has an invalid length"))
		}
		pages = append(pages, p)
	}
	if p.offset+int64(p.length) != length {
		return nil, cmp.Or(r.err, errors.New("pages do not cover the whole trace index"))
	}
	return pages, r.end()
}

// pagesFor returns the pages that may hold a hash. Entries of one hash may extend over several
// pages.
func pagesFor(pages []indexPage, hash uint64) []indexPage {
	from, found := slices.BinarySearchFunc(pages, hash, func(p indexPage, h uint64) int { return cmp.Compare(p.first, h) })
	to := from
	for to < len(pages) && pages[to].first == hash {
		to++
	}
	if from > 0 && (found || to == from) {
		from--
	}
	return pages[from:to]
}

// lookup appends the blocks of a hash in a page. It is on the hot path: every trace lookup searches
// all segments, and most segments do not contain the trace.
func (p *indexPage) lookup(dst []uint32, page []byte, hash uint64, blocks int) ([]uint32, error) {
	b := page[4:]
	if checksum(b) != binary.LittleEndian.Uint32(page) {
		return dst, errChecksum
	}
	at := p.first
	for i := 0; i < len(b); {
		step, block, next := postingAt(b, i)
		if i = next; block >= uint64(blocks) || i > len(b) {
			return dst, errPosting
		}
		if at += step; at >= hash {
			if at > hash {
				break
			}
			dst = append(dst, uint32(block))
		}
	}
	return dst, nil
}

var errPosting = errors.New("invalid trace index entry")

// postingAt decodes the entry at position i of b and returns the position of the next one. The
// position exceeds len(b) if the entry is truncated.
func postingAt(b []byte, i int) (step, block uint64, next int) {
	const last = 0x8080808080808080 // highest bit of each byte: not set in the last byte of a varint
	if len(b)-i < 8 {
		step, i = varintAt(b, i)
		block, i = varintAt(b, i)
		return step, block, i
	}
	w := binary.LittleEndian.Uint64(b[i:])
	n := bits.TrailingZeros64(^w&last)/8 + 1 // length of the step in bytes
	if n > 5 || w>>(8*n)&0x80 != 0 {
		step, i = varintAt(b, i)
		block, i = varintAt(b, i)
		return step, block, i
	}
	block = w >> (8 * n) & 0x7f
	w &= 1<<(8*n) - 1
	step = w&0x7f | w>>1&(0x7f<<7) | w>>2&(0x7f<<14) | w>>3&(0x7f<<21) | w>>4&(0x7f<<28)
	return step, block, i + n + 1
}

// varintAt decodes the varint at position i of b and returns the position after it, which exceeds
// len(b) if the varint is truncated.
func varintAt(b []byte, i int) (v uint64, next int) {
	for shift := uint(0); i < len(b); shift += 7 {
		c := b[i]
		i++
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v, i
		}
	}
	return 0, len(b) + 1
}
