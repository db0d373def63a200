package segment

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"unsafe"

	"github.com/tracing-backend/tracing/exporters/disk/internal/block"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
)

// Zones summarize blocks so that searches can skip blocks without reading them. They are stored in
// two sections: bounds (of start times) are kept in memory; shapes (which shapes each block has)
// are a hundred times as large and are read in pages of several blocks.
//
//	bounds  blocks, (earliest start [8], latest - earliest)*,
//	        (length of page, decompressed length)*
//	shapes  page*, one per 16 blocks
//	page    CRC-32C of the rest [4], zone* or a zstd frame of them, whichever is shorter
//	zone    length of the rest, shapes, (shape - preceding shape)*, duration [shapes]
//
// Numbers without a size are varints. Shapes ascend; the first one is stored as the difference from
// 0. A duration is the maximum source.Step of the rows of the shape.
const zonePageBlocks = 16

// zoneWriter encodes the zones of the blocks of a file.
type zoneWriter struct {
	bounds []byte
	zones  []byte
	ends   []int // end of each page in zones
	blocks int
	buf    []byte
}

func (w *zoneWriter) add(z *block.Zone) {
	w.bounds = binary.LittleEndian.AppendUint64(w.bounds, z.MinStart)
	w.bounds = binary.AppendUvarint(w.bounds, z.MaxStart-z.MinStart)
	w.buf = appendShapes(w.buf[:0], z.Shapes)
	w.zones = append(binary.AppendUvarint(w.zones, uint64(len(w.buf))), w.buf...)
	if w.blocks%zonePageBlocks == 0 {
		w.ends = append(w.ends, 0)
	}
	w.blocks++
	w.ends[len(w.ends)-1] = len(w.zones)
}

// sections returns both sections. zip may be nil.
func (w *zoneWriter) sections(zip *compressor) (bounds, shapes []byte) {
	bounds = append(binary.AppendUvarint(nil, uint64(w.blocks)), w.bounds...)
	from := 0
	for _, end := range w.ends {
		raw := w.zones[from:end]
		page := zip.packPage(raw)
		shapes = append(binary.LittleEndian.AppendUint32(shapes, checksum(page)), page...)
		bounds = binary.AppendUvarint(binary.AppendUvarint(bounds, uint64(len(page)+4)), uint64(len(raw)))
		from = end
	}
	return bounds, shapes
}

func appendShapes(dst []byte, shapes []source.BlockShape) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(shapes)))
	before := uint32(0)
	for _, s := range shapes {
		dst = binary.AppendUvarint(dst, uint64(s.Shape-before))
		before = s.Shape
	}
	for _, s := range shapes {
		dst = append(dst, byte(s.Longest))
	}
	return dst
}

// readShapes decodes the output of appendShapes and appends it to dst. shapes is the number of
// shapes in the tables.
func (r *reader) readShapes(dst []source.BlockShape, shapes int) []source.BlockShape {
	n := r.int()
	if n > len(r.b)/2 {
		r.fail(errTruncated)
		return dst
	}
	from, at, b := len(dst), uint64(0), r.b
	dst = slices.Grow(dst, n)
	for range n {
		if len(b) > 0 && b[0] < 0x80 { // the usual case
			at, b = at+uint64(b[0]), b[1:]
		} else {
			r.b = b
			at += r.uvarint()
			b = r.b
		}
		if at >= uint64(shapes) {
			r.fail(errors.New("block refers to an undefined shape"))
			return dst[:from]
		}
		dst = append(dst, source.BlockShape{Shape: uint32(at)})
	}
	r.b = b
	for i, step := range r.take(n) {
		dst[from+i].Longest = source.Step(step)
	}
	if r.err != nil {
		return dst[:from]
	}
	return dst
}

// zones holds the decoded zones.
type zones struct {
	list  []source.BlockInfo
	pages []zonePage // of shapes; nil: the bounds are damaged
}

// zonePage locates a page.
type zonePage struct {
	offset      int64 // within the section
	length, raw int
}

func (z *zones) memory() int64 {
	largest := 0
	for i := range z.pages {
		largest = max(largest, z.pages[i].raw)
	}
	return int64(len(z.list))*infoMemory + int64(len(z.pages))*int64(unsafe.Sizeof(zonePage{})) + int64(largest)
}

// readBounds decodes the bounds of a block.
func (r *reader) readBounds(rows int) source.BlockInfo {
	z := source.BlockInfo{Rows: rows}
	if start := r.take(8); start != nil {
		z.MinStart = binary.LittleEndian.Uint64(start)
	}
	z.MaxStart = z.MinStart + r.uvarint()
	return z
}

// readBounds decodes the bounds section. shapes is the size of the shapes section in bytes.
func readBounds(b []byte, blocks []blockLocation, shapes int64) (*zones, error) {
	r := reader{b: b}
	if r.int() != len(blocks) {
		return nil, errors.New("number of blocks differs from that in the block list")
	}
	z := &zones{list: make([]source.BlockInfo, len(blocks)), pages: make([]zonePage, (len(blocks)+zonePageBlocks-1)/zonePageBlocks)}
	for i := range z.list {
		z.list[i] = r.readBounds(blocks[i].rows)
	}
	offset := int64(0)
	for i := range z.pages {
		p := zonePage{offset: offset, length: r.int(), raw: r.int()}
		if int64(p.length) > shapes-offset || p.length < 4 || p.raw > maxZonePage || p.raw > maxRatio*p.length {
			r.fail(errors.New("shapes page is too large or extends beyond its section"))
			return nil, r.err
		}
		offset += int64(p.length)
		z.pages[i] = p
	}
	return z, r.end()
}

// loadZones returns the zones. If they are damaged, it returns only the numbers of rows.
func (s *Segment) loadZones(b *blockList) *zones {
	z, err := s.zones.get(func() (*zones, error) { return s.readZones(b) }, s.loaded)
	if err == nil {
		return z
	}
	z = &zones{list: make([]source.BlockInfo, len(b.blocks))}
	for i := range z.list {
		z.list[i] = source.BlockInfo{Rows: b.blocks[i].rows, MaxStart: math.MaxUint64}
	}
	return z
}

func (s *Segment) readZones(b *blockList) (*zones, error) {
	raw, err := s.section(kindBounds, maxSection)
	if err != nil {
		return nil, err
	}
	return readBounds(raw, b.blocks, s.dir[kindShapes].length)
}

// BlockShapes appends the shapes that occur in a block. They are unknown if the section is damaged.
func (s *Segment) BlockShapes(dst []source.BlockShape, number int) (shapes []source.BlockShape, known bool) {
	b, err := s.load()
	if err != nil {
		return dst, false
	}
	z, from := s.loadZones(b.blockList), len(dst)
	if number/zonePageBlocks >= len(z.pages) {
		return dst, false
	}
	page, err := s.zonePage(z, number/zonePageBlocks)
	if err != nil {
		return dst, false
	}
	dst, err = page.shapes(dst, number%zonePageBlocks, len(b.tables.Shapes))
	if err != nil {
		return dst[:from], false
	}
	return dst, true
}

// zonePageData is a decompressed page. The last one is cached, because its blocks are usually
// visited one after the other.
type zonePageData struct {
	number int
	raw    []byte
}

// zonePage returns a page, from the cache or from the file.
func (s *Segment) zonePage(z *zones, number int) (*zonePageData, error) {
	if p := s.lastZonePage.Load(); p != nil && p.number == number {
		return p, nil
	}
	p := &z.pages[number]
	buf := s.buffer(p.length)
	defer s.release(buf)
	if err := s.readAt(*buf, s.dir[kindShapes].offset+p.offset); err != nil {
		return nil, err
	}
	raw, err := s.scratch.unpackPage(*buf, p.raw)
	if err != nil {
		return nil, err
	}
	open := &zonePageData{number, raw}
	s.lastZonePage.Store(open)
	return open, nil
}

// unpackPage verifies the checksum of a page of the shapes section and decompresses it. The result
// does not alias page.
func (c *scratch) unpackPage(page []byte, length int) ([]byte, error) {
	packed := page[4:]
	if checksum(packed) != binary.LittleEndian.Uint32(page) {
		return nil, errChecksum
	}
	if len(packed) == length {
		return append([]byte(nil), packed...), nil
	}
	dec, ok := c.decoders.Get().(*decompressor)
	if !ok {
		dec = newDecompressor()
	}
	defer c.decoders.Put(dec)
	return dec.unpack(packed, length)
}

// shapes appends the shapes of the n-th block of the page. shapes is the number of shapes in the
// tables.
func (p *zonePageData) shapes(dst []source.BlockShape, nth, shapes int) ([]source.BlockShape, error) {
	r := reader{b: p.raw}
	for range nth {
		r.take(r.int())
	}
	zone := reader{b: r.take(r.int())}
	if r.err != nil {
		return dst, r.err
	}
	dst = zone.readShapes(dst, shapes)
	return dst, zone.end()
}

// verifyShapes decodes all pages of the section.
func (s *Segment) verifyShapes(raw []byte, b *essentials) error {
	z := s.loadZones(b.blockList)
	if z.pages == nil {
		return nil // reported as damage of the bounds
	}
	if int64(len(raw)) != s.dir[kindShapes].length {
		return errors.New("shapes section is compressed; only its pages should be")
	}
	var list []source.BlockShape
	for i, p := range z.pages {
		unpacked, err := s.scratch.unpackPage(raw[p.offset:][:p.length], p.raw)
		if err != nil {
			return err
		}
		open := zonePageData{i, unpacked}
		for nth := range min(zonePageBlocks, len(z.list)-i*zonePageBlocks) {
			if list, err = open.shapes(list[:0], nth, len(b.tables.Shapes)); err != nil {
				return err
			}
		}
	}
	return nil
}
