package segment

import (
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/tracing-backend/tracing/exporters/disk/internal/block"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// writer is the second pass. It receives rows trace by trace, cuts them into blocks and collects
// the data for the sections.
type writer struct {
	info      Info
	opts      Options
	voc       *vocabulary
	converter *flushConverter // of a flush: converts encoded rows
	feeder    *filterFeeder   // of a merge: rows are already converted
	out       output
	encoder   *block.Encoder
	buf       []byte
	stats     *statsBuilder
	filters   *filterBuilder
	blocks    blockList
	zones     zoneWriter
	postings  []posting
	// The current trace.
	large        bool                       // the trace is cut when a block is full
	indexedBlock int                        // last block for which the trace has an entry in the index; -1: none
	rowStored    func(otlpdata.SpanID) bool // whether the trace has a row with a span id
	// The current block.
	heads     []rows.Head
	cells     []rows.Cell // varying cells
	first     []int32
	parts     []openPart // of traces; their postings are the last ones
	series    []uint32   // by row
	unsampled []unsampledCalls
	bytes     int
	shapes    byShape
}

// unsampledCalls is the number of unsampled calls that a row of the current block stands for.
type unsampledCalls struct {
	row int
	n   uint64
}

// newWriter starts a file. info describes its rows. The heads that are passed to the statistics
// builder refer to t.
func newWriter(f vfs.File, v *vocabulary, t *rows.Tables, info Info, opts Options) (*writer, error) {
	v.layout.elements = true
	filters := newFilterBuilder(v.layout)
	if opts.merge {
		filters.enableIntegers()
	}
	stats := newStatsBuilder(t)
	stats.copyNames = opts.merge
	w := &writer{info: info, opts: opts, voc: v, out: output{file: f}, encoder: block.NewEncoder(opts.Level), stats: stats, filters: filters}
	w.rowStored = func(id otlpdata.SpanID) bool { return stats.find(spanKey(id)) > 0 }
	return w, w.out.write(appendHeader(nil))
}

// finish writes the rest of the file.
func (w *writer) finish() (Info, error) {
	if err := w.writeBlock(); err != nil {
		return Info{}, err
	}
	if len(w.blocks.blocks)%groupBlocks > 0 {
		w.filters.end()
	}
	w.blocks.filterGroups = w.filters.list
	w.info.Blocks = len(w.blocks.blocks)
	if err := w.writeSections(); err != nil {
		return Info{}, err
	}
	w.info.Size = w.out.at
	return w.info, nil
}

// reserve announces a trace with at most the given numbers of rows, bytes and cells. If they do not
// fit into the current block, it starts a new one. A trace that is too large for a block is cut.
func (w *writer) reserve(rows, bytes, cells int) error {
	w.large = rows > 2*w.opts.blockRows || bytes > maxBlockBytes || cells > maxBlockCells
	if w.large || !w.fits(rows, bytes, cells) {
		return w.writeBlock()
	}
	return nil
}

// beginTrace announces the rows of a trace, in order. The caller then adds each of them. The writer
// retains keys until the last one is added.
func (w *writer) beginTrace(keys []rowKey) {
	w.stats.beginTrace(keys)
	w.indexedBlock = -1
	w.info.Rows += len(keys)
	if len(keys) > 0 {
		w.info.Traces++
	}
}

// add adds row i of the trace with the given size in bytes. Head and encoded cells use ids of the
// input.
func (w *writer) add(i int, h *rows.Head, bytes int, cells []byte) error {
	if err := w.reserveRow(bytes); err != nil {
		return err
	}
	from := len(w.cells)
	var texts rowTexts
	var err error
	if w.cells, texts, err = w.converter.convert(w.cells, h.Shape, cells); err != nil {
		return err
	}
	series := w.stats.add(uint32(i), h, texts.name)
	w.countUnsampled(h, texts.traceState)
	converted := *h
	converted.Shape, converted.Resource = w.voc.shapes[h.Shape], w.voc.resources[h.Resource]
	w.push(&converted, series, from, bytes)
	return nil
}

// addConverted adds row i of the trace with the given size in bytes. Head and cells use ids of the
// segment.
func (w *writer) addConverted(i int, h *rows.Head, bytes int, cells []rows.Cell) error {
	if err := w.reserveRow(bytes); err != nil {
		return err
	}
	from := len(w.cells)
	w.cells, w.info.RowBytes = append(w.cells, cells...), w.info.RowBytes+int64(bytes)
	texts := w.feeder.add(h.Shape, cells)
	w.countUnsampled(h, texts.traceState)
	w.push(h, w.stats.add(uint32(i), h, texts.name), from, bytes)
	return nil
}

// countUnsampled records how many unsampled calls the next row stands for.
func (w *writer) countUnsampled(h *rows.Head, traceState string) {
	if traceState == "" {
		return
	}
	if n := otlpdata.AdjustedCount(traceState, h.TraceID, h.SpanID); n > 1 {
		w.unsampled = append(w.unsampled, unsampledCalls{len(w.heads), n - 1})
	}
}

// reserveRow starts a new block if the next row of a large trace does not fit.
func (w *writer) reserveRow(bytes int) error {
	if w.large && !w.fits(1, bytes, 0) {
		return w.writeBlock()
	}
	return nil
}

// fits reports whether the given numbers of rows, bytes and cells fit into the current block. An
// empty block takes anything.
func (w *writer) fits(rows, bytes, cells int) bool {
	return len(w.heads) == 0 ||
		len(w.heads)+rows <= w.opts.blockRows && w.bytes+bytes <= maxBlockBytes && len(w.cells)+cells <= maxBlockCells
}

// push adds a row of the segment to the current block and to the trace index. Its cells are the
// last ones and start at from.
func (w *writer) push(h *rows.Head, series uint32, from, bytes int) {
	if w.zones.blocks == 0 && len(w.heads) == 0 {
		w.info.MinStart, w.info.MaxStart = h.Start, h.Start
	}
	w.info.MinStart, w.info.MaxStart = min(w.info.MinStart, h.Start), max(w.info.MaxStart, h.Start)
	w.series, w.first, w.heads = append(w.series, series), append(w.first, int32(from)), append(w.heads, *h)
	w.bytes += bytes
	if w.indexedBlock != len(w.blocks.blocks) {
		w.indexedBlock = len(w.blocks.blocks)
		w.postings = append(w.postings, newPosting(source.TraceHash(w.voc.layout.tables.Resources[h.Resource].Tenant, h.TraceID), w.indexedBlock))
		w.parts = append(w.parts, openPart{start: h.Start})
	}
	w.parts[len(w.parts)-1].add(h, w.rowStored)
}

// byShape sorts the rows of a block by shape. The spans of a series are then counted one after the
// other, while their counters are in the CPU cache.
type byShape struct {
	next []uint32 // by shape: index of its next row; one more element than shapes
	rows []uint32
}

// sort returns the row numbers sorted by shape. They are valid until the next call.
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

// writeBlock writes the current block.
func (w *writer) writeBlock() error {
	if len(w.heads) == 0 {
		return nil
	}
	for _, i := range w.shapes.sort(w.heads, len(w.voc.layout.tables.Shapes)) {
		w.stats.collector.AddSpan(w.series[i], w.heads[i].Start, w.heads[i].Duration())
	}
	for _, e := range w.unsampled {
		w.stats.collector.AddUnsampled(w.series[e.row], w.heads[e.row].Start, w.heads[e.row].Duration(), e.n)
	}
	if len(w.blocks.blocks) == maxBlocks {
		return fmt.Errorf("%w: more than %d blocks", ErrTooLarge, maxBlocks)
	}
	var zone block.Zone
	w.buf, zone = w.encoder.Encode(w.buf[:0], w.voc.layout.block, w.heads, w.cells, w.first)
	if err := w.out.write(w.buf); err != nil {
		return err
	}
	w.blocks.blocks = append(w.blocks.blocks, blockLocation{length: len(w.buf), rows: len(w.heads)})
	w.zones.add(&zone)
	w.closeParts(zone.MinStart)
	if len(w.blocks.blocks)%groupBlocks == 0 {
		w.filters.end()
	}
	w.heads, w.cells, w.first, w.series, w.unsampled, w.bytes = w.heads[:0], w.cells[:0], w.first[:0], w.series[:0], w.unsampled[:0], 0
	return nil
}

// writeSections writes everything after the blocks.
func (w *writer) writeSections() error {
	l := w.voc.layout
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
	s.plain(kindFilters, w.filters.section)
	index := newIndexSections(w.postings, s.zip)
	s.plain(kindIndex, index.pages)
	s.plain(kindIndexPages, index.directory)
	s.plain(kindParts, index.parts)
	s.plain(kindPartPages, index.partsDirectory)
	s.packed(kindSeries, w.stats.collector.AppendSeries(nil))
	s.packed(kindEdges, w.stats.collector.AppendEdges(nil))
	s.packed(kindOrphans, w.stats.collector.AppendOrphans(nil))
	w.info.NameBytes = s.names(w.stats.collector)
	s.packed(kindBlocks, w.blocks.append(nil))
	info := w.info.append(nil)
	if len(info) > maxInfo {
		return fmt.Errorf("%w: info of %d bytes", ErrTooLarge, len(info))
	}
	s.plain(kindInfo, info)
	return s.finish()
}
