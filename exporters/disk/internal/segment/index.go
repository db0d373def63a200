package segment

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// The trace index tells the blocks of a trace by a hash of tenant and id. Hashes of different traces may be the same; the id in the block
// decides. A trace that was cut has an entry for each of its blocks.
//
//	trace index            page*
//	page                   CRC-32C of the rest [4], (hash - hash before, block)*   hash before the first: that of the directory
//	trace index directory  pages, (first hash - first hash of the page before, length of the page, entries)*
//
// All numbers but the checksum are varints. A hash is the upper 40 bits of XXH64 of the id [16] followed by the tenant.
const hashBits = 40

// traceHash returns the hash of a trace in the index. scratch is reused.
func traceHash(tenant string, id otlpdata.TraceID) uint64 {
	var b [64]byte
	return xxhash.Sum64(append(append(b[:0], id[:]...), tenant...)) >> (64 - hashBits)
}

// posting is an entry of the trace index.
type posting struct {
	hash  uint64
	block uint32
}

// indexPage is what the directory says of a page.
type indexPage struct {
	first   uint64 // hash
	offset  int64  // in the section
	length  int
	entries int
}

// appendIndex returns the two sections of the trace index. It sorts postings.
func appendIndex(postings []posting) (pages, directory []byte) {
	slices.SortFunc(postings, func(a, b posting) int {
		if a.hash != b.hash {
			return cmp.Compare(a.hash, b.hash)
		}
		return cmp.Compare(a.block, b.block)
	})
	count, before := 0, uint64(0)
	var lines []byte
	for len(postings) > 0 {
		from, n, hash := len(pages), 0, postings[0].hash
		pages = append(pages, 0, 0, 0, 0)
		for n < len(postings) && len(pages)-from < pageBytes-2*binary.MaxVarintLen32 {
			pages = binary.AppendUvarint(pages, postings[n].hash-hash)
			pages = binary.AppendUvarint(pages, uint64(postings[n].block))
			hash = postings[n].hash
			n++
		}
		binary.LittleEndian.PutUint32(pages[from:], checksum(pages[from+4:]))
		lines = binary.AppendUvarint(lines, postings[0].hash-before)
		lines = binary.AppendUvarint(lines, uint64(len(pages)-from))
		lines = binary.AppendUvarint(lines, uint64(n))
		before = postings[0].hash
		postings = postings[n:]
		count++
	}
	return pages, append(binary.AppendUvarint(nil, uint64(count)), lines...)
}

// readIndexPages reads the directory of an index section of the given length.
func readIndexPages(b []byte, length int64) ([]indexPage, error) {
	r := reader{b: b}
	n := r.int()
	if n > len(b) {
		return nil, errShort
	}
	pages := make([]indexPage, 0, n)
	var p indexPage
	for range n {
		p.first += r.uvarint()
		p.offset += int64(p.length)
		p.length, p.entries = r.int(), r.int()
		if p.length < 4 || p.length > 2*pageBytes || p.offset+int64(p.length) > length {
			return nil, cmp.Or(r.err, errors.New("it places a page outside of the trace index"))
		}
		pages = append(pages, p)
	}
	if p.offset+int64(p.length) != length {
		return nil, cmp.Or(r.err, errors.New("it does not cover the trace index"))
	}
	return pages, r.end()
}

// pagesFor returns the pages in which a hash may be. Equal hashes may go over the end of a page.
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

// lookup appends the blocks that a page has for a hash.
func (p *indexPage) lookup(dst []uint32, page []byte, hash uint64, blocks int) ([]uint32, error) {
	r := reader{b: page[4:]}
	if checksum(r.b) != binary.LittleEndian.Uint32(page) {
		return dst, errChecksum
	}
	at := p.first
	for len(r.b) > 0 {
		at += r.uvarint()
		block := r.id(blocks)
		if at > hash || r.err != nil {
			break
		}
		if at == hash {
			dst = append(dst, block)
		}
	}
	return dst, r.err
}
