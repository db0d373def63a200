package segment

import (
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/tracing-backend/tracing/exporters/disk/internal/block"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// writer is the second pass: it cuts the rows, which come trace by trace, into blocks and collects what the sections say about them.
type writer struct {
	info     Info
	opts     Options
	voc      *vocabulary
	mover    *mover      // of a flush: rows come as they are encoded
	filters  *rowFilters // of a merge: rows come as they will be
	out      output
	encoder  *block.Encoder
	buf      []byte
	kin      *kinship
	stripes  *stripes
	blocks   blockList
	zones    zoneWriter
	postings []posting
	// The trace at hand.
	large  bool // it is cut where a block is full
	posted int  // the block that the trace index has for it; -1: none
	// The block at hand.
	heads  []rows.Head
	cells  []rows.Cell // those that vary
	first  []int32
	series []uint32 // by row
	extra  []extraSpans
	bytes  int
	shapes byShape
}

// extraSpans is how many more spans than itself a row of the block at hand stands for.
type extraSpans struct {
	row int
	n   uint64
}

// newWriter begins a file. The info is what is known of its rows, and the heads that kin is given refer to t.
func newWriter(f vfs.File, v *vocabulary, t *rows.Tables, info Info, opts Options) (*writer, error) {
	stripes := newStripes(v.layout)
	if opts.merge {
		stripes.withIntegers()
	}
	kin := newKinship(t)
	kin.borrowed = opts.merge
	w := &writer{info: info, opts: opts, voc: v, out: output{file: f}, encoder: block.NewEncoder(opts.Level), kin: kin, stripes: stripes}
	return w, w.out.write(appendHeader(nil))
}

// finish writes the rest of the file.
func (w *writer) finish() (Info, error) {
	if err := w.cut(); err != nil {
		return Info{}, err
	}
	if len(w.blocks.blocks)%stripeBlocks > 0 {
		w.stripes.end()
	}
	w.blocks.stripes = w.stripes.list
	w.info.Blocks = len(w.blocks.blocks)
	if err := w.writeSections(); err != nil {
		return Info{}, err
	}
	w.info.Size = w.out.at
	return w.info, nil
}

// room says how many rows, bytes and cells a trace has at most. They come into the block at hand if they fit, else into a new one, or into
// several if they are too many.
func (w *writer) room(rows, bytes, cells int) error {
	w.large = rows > 2*w.opts.blockRows || bytes > maxBlockBytes || cells > maxBlockCells
	if w.large || !w.fits(rows, bytes, cells) {
		return w.cut()
	}
	return nil
}

// begin says which rows the trace has, in order. They follow, each by add; until the last one the writer keeps keys.
func (w *writer) begin(keys []rowKey) {
	w.kin.begin(keys)
	w.posted = -1
	w.info.Rows += len(keys)
	if len(keys) > 0 {
		w.info.Traces++
	}
}

// add adds row i of the trace, which has so many bytes. It is one of the input, and encoded.
func (w *writer) add(i int, h *rows.Head, bytes int, cells []byte) error {
	if err := w.extend(bytes); err != nil {
		return err
	}
	from := len(w.cells)
	var says said
	var err error
	if w.cells, says, err = w.mover.move(w.cells, h.Shape, cells); err != nil {
		return err
	}
	series := w.kin.add(uint32(i), h, says.name)
	w.adjust(h, says.traceState)
	moved := *h
	moved.Shape, moved.Resource = w.voc.shapes[h.Shape], w.voc.resources[h.Resource]
	w.push(&moved, series, from, bytes)
	return nil
}

// addMoved adds row i of the trace, which has so many bytes. It is one of the segment.
func (w *writer) addMoved(i int, h *rows.Head, bytes int, cells []rows.Cell) error {
	if err := w.extend(bytes); err != nil {
		return err
	}
	from := len(w.cells)
	w.cells, w.info.RowBytes = append(w.cells, cells...), w.info.RowBytes+int64(bytes)
	says := w.filters.take(h.Shape, cells)
	w.adjust(h, says.traceState)
	w.push(h, w.kin.add(uint32(i), h, says.name), from, bytes)
	return nil
}

// adjust notes how many spans the next row of the block at hand stands for.
func (w *writer) adjust(h *rows.Head, traceState string) {
	if traceState == "" {
		return
	}
	if n := otlpdata.AdjustedCount(traceState, h.TraceID, h.SpanID); n > 1 {
		w.extra = append(w.extra, extraSpans{len(w.heads), n - 1})
	}
}

// extend makes room for the next row of a trace, which may be a large one.
func (w *writer) extend(bytes int) error {
	if w.large && !w.fits(1, bytes, 0) {
		return w.cut()
	}
	return nil
}

// fits reports whether so many more rows may be added to the block at hand. An empty one takes anything.
func (w *writer) fits(rows, bytes, cells int) bool {
	return len(w.heads) == 0 ||
		len(w.heads)+rows <= w.opts.blockRows && w.bytes+bytes <= maxBlockBytes && len(w.cells)+cells <= maxBlockCells
}

// push adds a row of the segment, whose cells come last and begin at from, to the block at hand and to the index.
func (w *writer) push(h *rows.Head, series uint32, from, bytes int) {
	if w.zones.blocks == 0 && len(w.heads) == 0 {
		w.info.MinStart, w.info.MaxStart = h.Start, h.Start
	}
	w.info.MinStart, w.info.MaxStart = min(w.info.MinStart, h.Start), max(w.info.MaxStart, h.Start)
	w.series, w.first, w.heads = append(w.series, series), append(w.first, int32(from)), append(w.heads, *h)
	w.bytes += bytes
	if w.posted != len(w.blocks.blocks) {
		w.posted = len(w.blocks.blocks)
		w.postings = append(w.postings, newPosting(traceHash(w.voc.layout.tables.Resources[h.Resource].Tenant, h.TraceID), w.posted))
	}
}

// byShape sorts the rows of a block by their shapes. Spans of a series are then counted one after the other, while its counters are in
// the cache.
type byShape struct {
	next []uint32 // by shape: where its next row goes; one more behind
	rows []uint32
}

// sort returns the numbers of the rows, which are valid until the next call. There are so many shapes.
func (s *byShape) sort(heads []rows.Head, shapes int) []uint32 {
	s.next = slices.Grow(s.next[:0], shapes+1)[:shapes+1]
	clear(s.next)
	for i := range heads {
		s.next[heads[i].Shape+1]++
	}
	for i := range shapes {
		s.next[i+1] += s.next[i]
	}
	s.rows = slices.Grow(s.rows[:0], len(heads))[:len(heads)]
	for i := range heads {
		at := &s.next[heads[i].Shape]
		s.rows[*at] = uint32(i)
		*at++
	}
	return s.rows
}

// cut writes the block at hand.
func (w *writer) cut() error {
	if len(w.heads) == 0 {
		return nil
	}
	for _, i := range w.shapes.sort(w.heads, len(w.voc.layout.tables.Shapes)) {
		w.kin.collector.AddSpan(w.series[i], w.heads[i].Start, w.heads[i].Duration())
	}
	for _, e := range w.extra {
		w.kin.collector.AddUnsampled(w.series[e.row], w.heads[e.row].Start, w.heads[e.row].Duration(), e.n)
	}
	if len(w.blocks.blocks) == maxBlocks {
		return fmt.Errorf("%w: more than %d blocks", ErrTooLarge, maxBlocks)
	}
	var zone block.Zone
	w.buf, zone = w.encoder.Encode(w.buf[:0], w.voc.layout.block, w.heads, w.cells, w.first)
	if err := w.out.write(w.buf); err != nil {
		return err
	}
	w.blocks.blocks = append(w.blocks.blocks, blockPlace{length: len(w.buf), rows: len(w.heads)})
	w.zones.add(&zone)
	if len(w.blocks.blocks)%stripeBlocks == 0 {
		w.stripes.end()
	}
	w.heads, w.cells, w.first, w.series, w.extra, w.bytes = w.heads[:0], w.cells[:0], w.first[:0], w.series[:0], w.extra[:0], 0
	return nil
}

// writeSections writes what follows the blocks.
func (w *writer) writeSections() error {
	l := w.voc.layout
	pages, directory := appendIndex(w.postings)
	s := sectionWriter{out: &w.out}
	if !w.opts.plain {
		s.zip = newCompressor(zstd.EncoderLevel(w.opts.Level))
		defer s.zip.enc.Close()
	}
	s.packed(kindTables, l.appendTables(nil))
	s.packed(kindLayout, l.appendLayout(nil))
	bounds, shapes := w.zones.sections(s.zip)
	s.packed(kindBounds, bounds)
	s.plain(kindShapes, shapes)
	s.plain(kindFilters, w.stripes.section)
	s.plain(kindIndex, pages)
	s.plain(kindIndexPages, directory)
	s.packed(kindSeries, w.kin.collector.AppendSeries(nil))
	s.packed(kindEdges, w.kin.collector.AppendEdges(nil))
	s.packed(kindOrphans, w.kin.collector.AppendOrphans(nil))
	s.catalog(l.tables)
	s.packed(kindBlocks, w.blocks.append(nil))
	info := w.info.append(nil)
	if len(info) > maxInfo {
		return fmt.Errorf("%w: info of %d bytes", ErrTooLarge, len(info))
	}
	s.plain(kindInfo, info)
	return s.finish()
}
