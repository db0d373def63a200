package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/klauspost/compress/zstd"
)

const (
	magic       = "SPANSEGM"
	version     = 1
	headerSize  = 16
	trailerSize = 32
	entrySize   = 32
)

// ErrNewer matches the error of Open for a file in the format of a newer program version.
var ErrNewer = errors.New("segment was written in a newer format; upgrade this program to read it")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// kind identifies a section. The numbers are part of the file format.
type kind uint16

const (
	kindInfo       kind = 1 + iota
	kindTables          // items of package rows
	kindLayout          // constants of shapes, sizes of dictionaries
	kindBlocks          // length and rows of each block
	_                   // unused
	kindFilters         // pages of filters
	kindIndex           // pages of the trace index
	kindIndexPages      // directory of these pages
	kindSeries
	kindEdges
	kindOrphans
	_          // unused
	kindBounds // bounds of starts of blocks, and directory of the pages of kindShapes
	kindShapes // shapes of each block, in pages
	kindParts  // pages of the parts of traces
	kindPartPages
	kindServices      // names of services, in pages; optional, like the next two
	kindOperations    // names of operations, in pages
	kindNameDirectory // directory of these pages
	kinds             // number of kinds, including 0
)

func (k kind) String() string {
	names := [kinds]string{"", "info", "tables", "layout", "block list", "", "filters", "trace index", "trace index directory",
		"series", "edges", "orphans", "", "block bounds", "block shapes", "trace parts", "trace parts directory",
		"services", "operations", "directory of names"}
	if k < kinds {
		return names[k]
	}
	return fmt.Sprintf("section %d", uint16(k))
}

// codec identifies the encoding of a section.
type codec uint16

const (
	stored codec = iota
	zstandard
)

// entry is an entry of the directory.
type entry struct {
	kind           kind
	codec          codec
	crc            uint32 // of the stored bytes
	offset, length int64  // in the file
	raw            int64  // decompressed length
}

func (e *entry) append(dst []byte) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint16(dst, uint16(e.kind))
	dst = le.AppendUint16(dst, uint16(e.codec))
	dst = le.AppendUint32(dst, e.crc)
	dst = le.AppendUint64(dst, uint64(e.offset))
	dst = le.AppendUint64(dst, uint64(e.length))
	return le.AppendUint64(dst, uint64(e.raw))
}

// directory holds the entries by kind.
type directory [kinds]entry

// readDirectory decodes the directory of a file whose sections end at limit. It ignores unknown
// kinds.
func readDirectory(b []byte, limit int64) (*directory, error) {
	if len(b)%entrySize != 0 {
		return nil, errTruncated
	}
	d := &directory{}
	for e := range slices.Chunk(b, entrySize) {
		le := binary.LittleEndian
		s := entry{kind: kind(le.Uint16(e)), codec: codec(le.Uint16(e[2:])), crc: le.Uint32(e[4:]),
			offset: int64(le.Uint64(e[8:])), length: int64(le.Uint64(e[16:])), raw: int64(le.Uint64(e[24:]))}
		if s.kind == 0 || s.kind >= kinds {
			continue
		}
		if d[s.kind].kind != 0 {
			return nil, fmt.Errorf("duplicate section %s", s.kind)
		}
		if err := s.check(limit); err != nil {
			return nil, fmt.Errorf("%s: %w", s.kind, err)
		}
		d[s.kind] = s
	}
	return d, nil
}

func (e *entry) check(limit int64) error {
	switch {
	case e.offset < headerSize || e.length < 0 || e.offset > limit || e.length > limit-e.offset:
		return errors.New("section lies outside the file")
	case e.codec > zstandard:
		return errors.New("unknown codec")
	case e.raw < 0 || e.raw > maxSection || e.codec == stored && e.raw != e.length || e.codec == zstandard && e.raw > maxRatio*e.length:
		return errors.New("invalid decompressed length")
	}
	return nil
}

// trailer is the end of the file.
type trailer struct {
	offset int64 // of the directory
	length int64
	crc    uint32 // of the directory
}

func (t *trailer) append(dst []byte) []byte {
	from := len(dst)
	le := binary.LittleEndian
	dst = le.AppendUint64(dst, uint64(t.offset))
	dst = le.AppendUint32(dst, uint32(t.length))
	dst = le.AppendUint32(dst, t.crc)
	dst = le.AppendUint32(dst, version)
	dst = le.AppendUint32(dst, checksum(dst[from:]))
	return append(dst, magic...)
}

// readTrailer decodes the trailer of a file of the given size.
func readTrailer(b []byte, size int64) (trailer, error) {
	le := binary.LittleEndian
	switch {
	case string(b[24:]) != magic:
		return trailer{}, errors.New("not a segment file, or its end is missing")
	case checksum(b[:20]) != le.Uint32(b[20:]):
		return trailer{}, errChecksum
	case le.Uint32(b[16:]) > version:
		return trailer{}, fmt.Errorf("%w (format version %d)", ErrNewer, le.Uint32(b[16:]))
	}
	t := trailer{offset: int64(le.Uint64(b)), length: int64(le.Uint32(b[8:])), crc: le.Uint32(b[12:])}
	if t.length > maxDirectory || t.offset < headerSize || t.offset != size-trailerSize-t.length {
		return trailer{}, errors.New("section directory lies outside the file")
	}
	return t, nil
}

var errChecksum = errors.New("checksum mismatch")

func appendHeader(dst []byte) []byte {
	from := len(dst)
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint32(dst, version)
	return binary.LittleEndian.AppendUint32(dst, checksum(dst[from:]))
}

// checkHeader checks the start of a file.
func checkHeader(b []byte) error {
	if string(b) != string(appendHeader(nil)) {
		return errors.New("not a segment header of this format version")
	}
	return nil
}

// compressor compresses sections.
type compressor struct {
	enc *zstd.Encoder
	buf []byte
}

func newCompressor(level zstd.EncoderLevel) *compressor {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
		zstd.WithLowerEncoderMem(true), zstd.WithWindowSize(1<<20))
	if err != nil {
		panic(err) // the options are constants
	}
	return &compressor{enc: enc}
}

// packPage returns a page of a section that is read in pages, compressed if that saves space. It is
// valid until the next call. c may be nil.
func (c *compressor) packPage(raw []byte) []byte {
	if c == nil {
		return raw
	}
	page, _ := c.pack(raw)
	return page
}

// pack compresses a section if that saves space. The result is valid until the next call.
func (c *compressor) pack(raw []byte) ([]byte, codec) {
	c.buf = c.enc.EncodeAll(raw, c.buf[:0])
	if len(c.buf) >= len(raw) || len(raw) > maxRatio*len(c.buf) {
		return raw, stored
	}
	return c.buf, zstandard
}

// unpack reverts pack. It allocates at most the length in the entry, which was checked.
func unpack(b []byte, e *entry) ([]byte, error) {
	if e.codec == stored {
		return b, nil
	}
	d := newDecompressor()
	defer d.dec.Close()
	return d.unpack(b, int(e.raw))
}

// decompressor reverts a compressor. It has no goroutines.
type decompressor struct{ dec *zstd.Decoder }

func newDecompressor() *decompressor {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return &decompressor{dec}
}

// unpack decompresses b to the given length.
func (d *decompressor) unpack(b []byte, length int) ([]byte, error) {
	raw, err := d.dec.DecodeAll(b, make([]byte, 0, length))
	switch {
	case err != nil:
		return nil, fmt.Errorf("decompressing: %w", err)
	case len(raw) != length:
		return nil, errTruncated
	}
	return raw, nil
}

// sectionWriter writes sections, then the directory and the trailer. After the first error it does
// nothing.
type sectionWriter struct {
	out     *output
	zip     *compressor // nil: no compression
	entries []byte
	err     error
}

// packed writes a section that is read as a whole, compressed.
func (s *sectionWriter) packed(k kind, raw []byte) {
	if s.zip == nil {
		s.plain(k, raw)
		return
	}
	b, c := s.zip.pack(raw)
	s.write(k, c, b, len(raw))
}

// plain writes a section that is read in parts, uncompressed.
func (s *sectionWriter) plain(k kind, raw []byte) { s.write(k, stored, raw, len(raw)) }

func (s *sectionWriter) write(k kind, c codec, b []byte, raw int) {
	if s.err == nil && raw > maxSection {
		s.err = fmt.Errorf("%w: %s of %d bytes", ErrTooLarge, k, raw)
	}
	if s.err != nil {
		return
	}
	e := entry{kind: k, codec: c, crc: checksum(b), offset: s.out.at, length: int64(len(b)), raw: int64(raw)}
	s.entries = e.append(s.entries)
	s.err = s.out.write(b)
}

func (s *sectionWriter) finish() error {
	if s.err != nil {
		return s.err
	}
	t := trailer{offset: s.out.at, length: int64(len(s.entries)), crc: checksum(s.entries)}
	return s.out.write(t.append(s.entries))
}
