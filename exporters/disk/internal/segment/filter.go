package segment

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"
	"unsafe"

	"github.com/cespare/xxhash/v2"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// A filter is a split-block Bloom filter: a value sets one bit in each of the eight words of one
// line, so that a test needs only that line. (Putze, Sanders, Singler: Cache-, Hash- and
// Space-Efficient Bloom Filters; the eight multipliers are from Apache Parquet, BloomFilter.md.)
// Lines are grouped in pages with a checksum each, because a test reads a single page.
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

// valueHash returns the hash of an attribute in filters: XXH64 of the text, XORed with XXH64 of the
// key rotated by 32 bits.
func valueHash(key uint64, text string) uint64 {
	return xxhash.Sum64String(text) ^ bits.RotateLeft64(key, 32)
}

func keyHash(key string) uint64 { return xxhash.Sum64String(key) }

// lineOf returns the line of a hash in a filter of n lines: the high half of the hash, scaled.
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

// linesFor returns the number of lines of a filter of n values.
func linesFor(n int) int { return (n*bitsPerText + lineBytes*8 - 1) / (lineBytes * 8) }

// filterBytes returns the size of a filter of n lines in bytes.
func filterBytes(n int) int { return n*lineBytes + (n+pageLines-1)/pageLines*4 }

// appendFilter appends the filter of the given hashes. lines is scratch memory, which it returns.
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

// pageOf returns the bounds of the page that holds a line of a filter of n lines.
func pageOf(line, n int) (from, to int) {
	page := line / pageLines
	return page * filterPage, min((page+1)*filterPage, filterBytes(n))
}

// testPage reports whether the page may hold the hash. It returns true for a damaged page.
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

// filterBuilder builds the filters of a segment. A filter holds the texts of attribute cells that
// vary and are not in a dictionary, and the texts of all attributes of any kind in encoded parts.
// For an array, it also holds the texts of otlpdata.Value.IndexedTexts. A merge also adds integers
// that vary; it saves the space for them by skipping most repeated values.
type filterBuilder struct {
	layout         *layout
	keys           []uint64     // by column: hash of its key
	places         []rows.Place // by column
	arrays         []bool       // by column: the values are arrays
	hashes         []uint64     // of the current group
	broken         bool         // the current group gets no filter: it has too many values, or unreadable ones
	recentHashes   []uint64     // hash table of some of hashes, without collision handling; nil: not used
	recentIntegers []integer    // likewise, of some integers of the current group

	list    []filterGroup
	section []byte
	maxSize int // maximum size of section in bytes

	lines  []uint32
	text   []byte
	reader otlpdata.SpanReader
}

// integer is a value of an integer column.
type integer struct {
	value uint64
	place uint32 // 1 + column
}

// enableIntegers adds integers to the filters.
func (s *filterBuilder) enableIntegers() {
	s.layout.integers = true
	s.recentHashes, s.recentIntegers = make([]uint64, maxRecentHashes), make([]integer, maxRecentIntegers)
}

func newFilterBuilder(l *layout) *filterBuilder {
	n := len(l.tables.Columns)
	s := &filterBuilder{layout: l, maxSize: maxFilters, keys: make([]uint64, n), places: make([]rows.Place, n),
		arrays: make([]bool, n)}
	for i := range l.tables.Columns {
		s.keys[i], s.places[i] = keyHash(l.tables.Columns[i].Key), l.tables.Columns[i].Place
		s.arrays[i] = l.tables.Columns[i].Kind == otlpdata.ValueArray
	}
	if slices.Contains(s.arrays, true) { // elements are often the same
		s.recentHashes = make([]uint64, maxRecentHashes)
	}
	return s
}

// covers reports whether filters hold the varying texts of a column.
func (s *filterBuilder) covers(column uint32) bool {
	switch place := s.places[column]; place {
	case rows.Attribute, rows.EventAttribute:
		return s.layout.inline[column] || s.arrays[column] || s.layout.integers && s.layout.tables.Columns[column].Kind == otlpdata.ValueInt
	default:
		return isEncoded(place)
	}
}

// add adds a text of a covered column.
func (s *filterBuilder) add(column uint32, text string) {
	switch place := s.places[column]; {
	case len(s.hashes) > maxGroupValues || s.broken:
		s.broken = true
	case isEncoded(place):
		s.addBlob(place, text)
	case s.arrays[column]:
		s.addValue(s.keys[column], otlpdata.EncodedValue(otlpdata.ValueArray, text))
	default:
		s.addHash(valueHash(s.keys[column], text))
	}
}

func (s *filterBuilder) addHash(h uint64) {
	if s.recentHashes != nil && h != 0 {
		at := &s.recentHashes[h%maxRecentHashes]
		if *at == h {
			return
		}
		*at = h
	}
	s.hashes = append(s.hashes, h)
}

// addInteger adds an integer of an attribute column.
func (s *filterBuilder) addInteger(column uint32, v uint64) {
	i := integer{v, column + 1}
	at := &s.recentIntegers[(v^uint64(column)*0x9e3779b97f4a7c15)*0x9e3779b97f4a7c15>>(64-recentIntegerBits)]
	if *at == i {
		return
	}
	*at = i
	s.text = strconv.AppendInt(s.text[:0], int64(v), 10)
	s.add(column, unsafe.String(unsafe.SliceData(s.text), len(s.text)))
}

// addBlob adds the attributes of an encoded part.
func (s *filterBuilder) addBlob(place rows.Place, data string) {
	b := []byte(data)
	if place == rows.Extra {
		r := reader{b: b}
		for n := r.int(); n > 0 && r.err == nil; n-- {
			r.uvarint()
		}
		s.broken = s.broken || r.err != nil
		b = r.b
	}
	span, err := s.reader.Read(b)
	if err != nil {
		s.broken = true
		return
	}
	s.addAttributes(span.Attributes)
	for i := range span.Events {
		s.addAttributes(span.Events[i].Attributes)
	}
	for i := range span.Links {
		s.addAttributes(span.Links[i].Attributes)
	}
}

func (s *filterBuilder) addAttributes(kvs []otlpdata.KeyValue) {
	for i := range kvs {
		if len(s.hashes) > maxGroupValues {
			s.broken = true
			return
		}
		s.addValue(keyHash(kvs[i].Key), kvs[i].Value)
	}
}

// addValue adds the text of a value. For an array, it also adds the texts of its elements.
func (s *filterBuilder) addValue(key uint64, v otlpdata.Value) {
	s.text = v.AppendText(s.text[:0])
	s.addHash(valueHash(key, string(s.text)))
	if v.Kind() != otlpdata.ValueArray {
		return
	}
	for text := range v.IndexedTexts() {
		s.layout.longArrays = s.layout.longArrays || text == otlpdata.LongArray
		s.addHash(valueHash(key, text))
	}
}

// end completes the filter of the current group.
func (s *filterBuilder) end() {
	lines := linesFor(len(s.hashes))
	if s.broken || lines >= maxGroupValues || len(s.section)+filterBytes(lines) > s.maxSize {
		s.list = append(s.list, filterGroup{lines: -1})
	} else {
		s.list = append(s.list, filterGroup{lines: lines})
		s.section, s.lines = appendFilter(s.section, s.hashes, s.lines)
	}
	s.hashes, s.broken = s.hashes[:0], false
	clear(s.recentHashes)
	clear(s.recentIntegers)
}
