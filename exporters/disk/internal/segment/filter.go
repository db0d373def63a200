package segment

import (
	"encoding/binary"
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// A stripe's filter is a split-block Bloom filter: a value sets one bit in each of the eight words of one line, so that a test needs that
// line only. (Putze, Sanders, Singler: Cache-, Hash- and Space-Efficient Bloom Filters; the eight multipliers are those of Apache Parquet,
// BloomFilter.md.) Lines stand in pages with a checksum each, because a test reads no more than a page.
//
//	filter  page*
//	page    line [32] * up to 16, CRC-32C of the lines [4]
//	line    8 little-endian words of 32 bits
const (
	lineWords   = 8
	lineBytes   = lineWords * 4
	pageLines   = 16
	filterPage  = pageLines*lineBytes + 4
	bitsPerText = 12
)

// valueHash is the hash of an attribute in filters: XXH64 of the text, exclusive or XXH64 of the key rotated by 32 bits.
func valueHash(key uint64, text string) uint64 {
	return xxhash.Sum64String(text) ^ bits.RotateLeft64(key, 32)
}

func keyHash(key string) uint64 { return xxhash.Sum64String(key) }

// lineOf returns which of n lines a hash belongs to: the high half of the hash, scaled.
func lineOf(hash uint64, n int) int { return int(hash >> 32 * uint64(n) >> 32) }

// masks returns the bit that a hash sets in each word of its line.
func masks(hash uint64) [lineWords]uint32 {
	m := salts()
	for i, s := range m {
		m[i] = 1 << (uint32(hash) * s >> 27)
	}
	return m
}

func salts() [lineWords]uint32 {
	return [lineWords]uint32{0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31}
}

// linesFor returns how many lines a filter of n values has.
func linesFor(n int) int { return (n*bitsPerText + lineBytes*8 - 1) / (lineBytes * 8) }

// filterBytes returns the length of a filter with n lines.
func filterBytes(n int) int { return n*lineBytes + (n+pageLines-1)/pageLines*4 }

// appendFilter appends the filter of the given hashes. lines is scratch, which it returns.
func appendFilter(dst []byte, hashes []uint64, lines []uint32) ([]byte, []uint32) {
	n := linesFor(len(hashes))
	if cap(lines) < n*lineWords {
		lines = make([]uint32, n*lineWords)
	}
	lines = lines[:n*lineWords]
	clear(lines)
	for _, h := range hashes {
		line := (*[lineWords]uint32)(lines[lineOf(h, n)*lineWords:])
		for i, salt := range salts() {
			line[i] |= 1 << (uint32(h) * salt >> 27)
		}
	}
	for from := 0; from < len(lines); from += pageLines * lineWords {
		begin := len(dst)
		for _, w := range lines[from:min(len(lines), from+pageLines*lineWords)] {
			dst = binary.LittleEndian.AppendUint32(dst, w)
		}
		dst = binary.LittleEndian.AppendUint32(dst, checksum(dst[begin:]))
	}
	return dst, lines
}

// pageOf returns where the page that holds a line of a filter of n lines begins and ends.
func pageOf(line, n int) (from, to int) {
	page := line / pageLines
	return page * filterPage, min((page+1)*filterPage, filterBytes(n))
}

// testPage reports whether the page may hold the hash. A damaged one may.
func testPage(page []byte, hash uint64, line int) bool {
	lines := page[:len(page)-4]
	if checksum(lines) != binary.LittleEndian.Uint32(page[len(page)-4:]) {
		return true
	}
	words := lines[line%pageLines*lineBytes:]
	for i, m := range masks(hash) {
		if binary.LittleEndian.Uint32(words[i*4:])&m == 0 {
			return false
		}
	}
	return true
}
