package segment

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/tracing-backend/tracing/exporters/disk/internal/block"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/vfs"
)

// writer is the second pass: it cuts the rows, which come trace by trace, into blocks and collects what the sections say about them.
type writer struct {
	info     Info
	opts     Options
	voc      *vocabulary
	mover    *mover
	out      output
	encoder  *block.Encoder
	buf      []byte
	kin      *kinship
	stripes  *stripes
	blocks   blockList
	zones    []byte // of all blocks; in memory they are several times as large
	postings []posting
	// The trace at hand.
	large  bool // it is cut where a block is full
	posted int  // the block that the trace index has for it; -1: none
	// The block at hand.
	heads  []rows.Head
	cells  []rows.Cell // those that vary
	first  []int32
	series []uint32 // by row
	bytes  int
	shapes byShape
}

// newWriter begins a file of rows that the planner has seen. The info is what is known of them.
func newWriter(f vfs.File, p *planner, info Info, opts Options) (*writer, error) {
	v, err := newVocabulary(p)
	if err != nil {
		return nil, err
	}
	stripes := newStripes(v.layout)
	if opts.merge {
		stripes.withIntegers()
	}
	kin := newKinship(p.in)
	kin.borrowed = opts.merge
	w := &writer{info: info, opts: opts, voc: v, mover: newMover(v, p, stripes), out: output{file: f},
		encoder: block.NewEncoder(opts.Level), kin: kin, stripes: stripes}
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

// add adds row i of the trace, which has so many bytes.
func (w *writer) add(i int, h *rows.Head, bytes int, cells []byte) error {
	if w.large && !w.fits(1, bytes, 0) {
		if err := w.cut(); err != nil {
			return err
		}
	}
	if err := w.addRow(i, h, bytes, cells); err != nil {
		return err
	}
	if w.posted != len(w.blocks.blocks) {
		w.posted = len(w.blocks.blocks)
		w.postings = append(w.postings, newPosting(traceHash(w.lastTenant(), h.TraceID), w.posted))
	}
	return nil
}

func (w *writer) lastTenant() string {
	return w.voc.layout.tables.Resources[w.heads[len(w.heads)-1].Resource].Tenant
}

// fits reports whether so many more rows may be added to the block at hand. An empty one takes anything.
func (w *writer) fits(rows, bytes, cells int) bool {
	return len(w.heads) == 0 ||
		len(w.heads)+rows <= w.opts.blockRows && w.bytes+bytes <= maxBlockBytes && len(w.cells)+cells <= maxBlockCells
}

// addRow adds a row to the block at hand and to all that is collected.
func (w *writer) addRow(i int, h *rows.Head, bytes int, cells []byte) error {
	from := len(w.cells)
	var name string
	var err error
	if w.cells, name, err = w.mover.move(w.cells, h.Shape, cells); err != nil {
		return err
	}
	w.series = append(w.series, w.kin.add(uint32(i), h, name))
	if len(w.zones) == 0 && len(w.heads) == 0 {
		w.info.MinStart, w.info.MaxStart = h.Start, h.Start
	}
	w.info.MinStart, w.info.MaxStart = min(w.info.MinStart, h.Start), max(w.info.MaxStart, h.Start)
	w.first = append(w.first, int32(from))
	w.heads = append(w.heads, *h)
	moved := &w.heads[len(w.heads)-1]
	moved.Shape, moved.Resource = w.voc.shapes[h.Shape], w.voc.resources[h.Resource]
	w.bytes += bytes
	return nil
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
		w.kin.collector.Span(w.series[i], w.heads[i].Start, w.heads[i].Duration())
	}
	if len(w.blocks.blocks) == maxBlocks {
		return fmt.Errorf("%w: more than %d blocks", ErrTooLarge, maxBlocks)
	}
	var zone source.BlockInfo
	w.buf, zone = w.encoder.Encode(w.buf[:0], w.voc.layout.block, w.heads, w.cells, w.first)
	if err := w.out.write(w.buf); err != nil {
		return err
	}
	w.blocks.blocks = append(w.blocks.blocks, blockPlace{length: len(w.buf), rows: len(w.heads)})
	w.zones = appendZone(w.zones, &zone)
	if len(w.blocks.blocks)%stripeBlocks == 0 {
		w.stripes.end()
	}
	w.heads, w.cells, w.first, w.series, w.bytes = w.heads[:0], w.cells[:0], w.first[:0], w.series[:0], 0
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
	s.packed(kindZones, append(binary.AppendUvarint(nil, uint64(len(w.blocks.blocks))), w.zones...))
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
