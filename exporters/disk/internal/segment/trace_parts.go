package segment

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// unknownDuration is the duration of a part whose duration is unknown.
const unknownDuration source.Step = math.MaxUint8

// openPart is the part of a trace in the current block.
type openPart struct {
	start, end uint64
	unbounded  bool
	root       source.RootFinder
}

// add adds a row of the segment.
func (p *openPart) add(h *rows.Head, stored func(otlpdata.SpanID) bool) {
	end := h.Start + h.Duration()
	if h.Start == 0 || end < h.Start { // without a start time, or beyond the range of times
		p.unbounded = true
	}
	p.start, p.end = min(p.start, h.Start), max(p.end, end)
	p.root.Add(h.Shape, h.Start, h.SpanID, h.ParentID, stored)
}

// closeParts adds the parts of the current block to their postings. minStart is the earliest start
// in the block.
func (w *writer) closeParts(minStart uint64) {
	postings := w.postings[len(w.postings)-len(w.parts):]
	for i := range w.parts {
		p, at := &w.parts[i], &postings[i]
		at.start, at.duration = source.StepOf(p.start-minStart), source.StepOf(p.end-p.start)
		if root := p.root.Root(); root <= math.MaxUint16 {
			at.root = uint16(root)
		}
		if p.unbounded {
			at.start, at.duration, at.root = 0, unknownDuration, 0
		}
	}
	w.parts = w.parts[:0]
}

// partBytes is the size of a part in the file before compression.
const partBytes = 4

// appendPartsPage appends a page of trace parts.
func appendPartsPage(dst []byte, postings []posting, zip *compressor) []byte {
	n := len(postings)
	raw := make([]byte, partBytes*n)
	for i := range postings {
		p := &postings[i]
		raw[i], raw[n+i] = byte(p.start), byte(p.duration)
		raw[2*n+i], raw[3*n+i] = byte(p.root), byte(p.root>>8)
	}
	page := zip.packPage(raw)
	return append(binary.LittleEndian.AppendUint32(dst, checksum(page)), page...)
}

// partPage locates a page of trace parts in its section.
type partPage struct {
	offset int64
	length int
}

// readPartPages decodes the directory of a section of the given length. index are the pages of the
// trace index.
func readPartPages(b []byte, index []indexPage, length int64) ([]partPage, error) {
	r := reader{b: b}
	if r.int() != len(index) {
		return nil, errors.New("number of pages differs from the trace index")
	}
	pages := make([]partPage, 0, len(index))
	offset := int64(0)
	for i := range index {
		p := partPage{offset, r.int()}
		if p.length < 4 || int64(p.length) > length-offset || index[i].entries > maxPageEntries {
			r.fail(errors.New("trace parts page is too large or extends beyond its section"))
			return nil, r.err
		}
		offset += int64(p.length)
		pages = append(pages, p)
	}
	if offset != length {
		r.fail(errors.New("pages do not cover all trace parts"))
	}
	return pages, r.end()
}

// TraceParts implements source.TraceParts.
func (s *Segment) TraceParts() (source.PartReader, error) {
	index, err := s.loadPages()
	if err != nil {
		return nil, err
	}
	r := &partReader{segment: s, index: index}
	b, err := s.loadBlocks()
	if err != nil {
		return nil, err
	}
	z := s.loadZones(b)
	if z.pages == nil && len(z.list) > 0 {
		return r, nil // the block bounds are damaged
	}
	r.blocks = z.list
	raw, err := s.section(kindPartPages, maxSection)
	if err != nil {
		return nil, withoutRows(err)
	}
	if r.parts, err = readPartPages(raw, index, s.dir[kindParts].length); err != nil {
		return nil, withoutRows(s.damage(kindPartPages.String(), err))
	}
	return r, nil
}

// partReader reads the parts of traces page by page.
type partReader struct {
	segment *Segment
	blocks  []source.BlockInfo
	index   []indexPage
	parts   []partPage         // nil: the parts are unbounded
	page    int                // number of pages that were read
	list    []source.TracePart // of the last page
	rest    []source.TracePart // those of list that were not returned
}

// Parts implements source.PartReader.
func (r *partReader) Parts() int {
	n := 0
	for i := range r.index {
		n += r.index[i].entries
	}
	return n
}

// Before implements source.PartReader.
func (r *partReader) Before(ctx context.Context, dst []source.TracePart, limit uint64) ([]source.TracePart, error) {
	for {
		for len(r.rest) > 0 && r.rest[0].Hash < limit {
			dst, r.rest = append(dst, r.rest[0]), r.rest[1:]
		}
		if len(r.rest) > 0 || r.page == len(r.index) || r.index[r.page].first >= limit {
			return dst, nil
		}
		if err := ctx.Err(); err != nil {
			return dst, err
		}
		if err := r.readPage(r.page); err != nil {
			return dst, err
		}
		r.page++
	}
}

// readPage reads the parts of a page into rest.
func (r *partReader) readPage(number int) error {
	s, p := r.segment, &r.index[number]
	buf := s.buffer(p.length)
	defer s.release(buf)
	err := s.readAt(*buf, s.dir[kindIndex].offset+p.offset)
	if err == nil {
		r.list, err = p.appendParts(r.list[:0], *buf, s.info.Blocks)
	}
	if err == nil && len(r.list) != p.entries {
		err = errPosting
	}
	if err != nil {
		return withoutRows(s.damage(kindIndex.String(), err))
	}
	r.rest = r.list
	if r.parts == nil {
		return nil
	}
	at := &r.parts[number]
	buf = s.buffer(at.length)
	defer s.release(buf)
	var raw []byte
	if err = s.readAt(*buf, s.dir[kindParts].offset+at.offset); err == nil {
		raw, err = s.scratch.unpackPage(*buf, partBytes*p.entries)
	}
	if err != nil {
		return withoutRows(s.damage(kindParts.String(), err))
	}
	r.setBounds(raw)
	return nil
}

// appendParts appends the unbounded parts of the entries of a page.
func (p *indexPage) appendParts(dst []source.TracePart, page []byte, blocks int) ([]source.TracePart, error) {
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
		at += step
		dst = append(dst, source.TracePart{Hash: at, Block: int32(block)})
	}
	return dst, nil
}

// setBounds sets the bounds of the parts in an index page from the same page of trace parts.
func (r *partReader) setBounds(raw []byte) {
	n := len(r.rest)
	for i := range r.rest {
		p := &r.rest[i]
		p.Start, p.Duration = source.Step(raw[i]), source.Step(raw[n+i])
		if p.Duration == unknownDuration {
			continue
		}
		p.Bounds, p.Base = source.Exact, r.blocks[p.Block].MinStart
		p.Root = source.PartRoot(raw[2*n+i]) | source.PartRoot(raw[3*n+i])<<8
	}
}

// verifyParts decodes all pages of the section.
func (s *Segment) verifyParts(raw []byte) error {
	index, err := s.loadPages()
	if err != nil {
		return nil // reported as damage of the trace index directory
	}
	directory, err := s.section(kindPartPages, maxSection)
	if err != nil {
		return nil // reported as damage of the trace parts directory
	}
	pages, err := readPartPages(directory, index, int64(len(raw)))
	if err != nil {
		return nil // also
	}
	for i, p := range pages {
		if _, err := s.scratch.unpackPage(raw[p.offset:][:p.length], partBytes*index[i].entries); err != nil {
			return fmt.Errorf("page %d: %w", i, err)
		}
	}
	return nil
}

// verifyPartPages decodes the directory of the trace parts.
func (s *Segment) verifyPartPages(raw []byte) error {
	index, err := s.loadPages()
	if err != nil {
		return nil // reported as damage of the trace index directory
	}
	_, err = readPartPages(raw, index, s.dir[kindParts].length)
	return err
}
