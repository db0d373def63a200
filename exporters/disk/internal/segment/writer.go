package segment

import (
	"fmt"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/tracing-backend/tracing/exporters/disk/internal/block"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/vfs"
)

// writer is the second pass: it cuts the rows into blocks and collects what the sections say about them.
type writer struct {
	*survey
	opts     Options
	voc      *vocabulary
	mover    *mover
	out      output
	encoder  *block.Encoder
	buf      []byte
	kin      *kinship
	stripes  *stripes
	blocks   blockList
	zones    []source.BlockInfo
	postings []posting
	fetched  [][]byte // some rows of the trace at hand
	// The block at hand.
	heads  []rows.Head
	cells  []rows.Cell // those that vary
	first  []int32
	series []uint32 // by row
	bytes  int
	shapes byShape
}

func newWriter(f vfs.File, s *survey, v *vocabulary, opts Options) *writer {
	stripes := newStripes(v.layout)
	return &writer{survey: s, opts: opts, voc: v, mover: newMover(v, s.planner, stripes), out: output{file: f},
		encoder: block.NewEncoder(opts.Level), kin: newKinship(s.in.Tables, s.order), stripes: stripes}
}

func (w *writer) writeBlocks() error {
	if err := w.out.write(appendHeader(nil)); err != nil {
		return err
	}
	for i := range w.order.traces {
		if err := w.addTrace(&w.order.traces[i]); err != nil {
			return err
		}
	}
	if err := w.cut(); err != nil {
		return err
	}
	if len(w.blocks.blocks)%stripeBlocks > 0 {
		w.stripes.end()
	}
	w.blocks.stripes = w.stripes.list
	w.info.Blocks = len(w.blocks.blocks)
	return nil
}

// addTrace adds the rows of a trace to the block at hand if they fit, else to a new one, or to several if they are too many.
func (w *writer) addTrace(t *trace) error {
	list := w.order.rowsOf(t)
	w.kin.begin(list)
	large := int(t.rows) > 2*w.opts.blockRows || t.bytes > maxBlockBytes || t.cells > maxBlockCells
	if large || !w.fits(int(t.rows), int(t.bytes), int(t.cells)) {
		if err := w.cut(); err != nil {
			return err
		}
	}
	posted := -1
	for ; len(list) > 0; list = list[min(together, len(list)):] {
		for i, b := range w.fetch(list[:min(together, len(list))]) {
			if large && !w.fits(1, len(b), 0) {
				if err := w.cut(); err != nil {
					return err
				}
			}
			if err := w.addRow(list[i], b); err != nil {
				return err
			}
			if posted != len(w.blocks.blocks) {
				posted = len(w.blocks.blocks)
				w.postings = append(w.postings, posting{traceHash(w.lastTenant(), t.id), uint32(posted)})
			}
		}
	}
	return nil
}

// fetch returns rows. They lie far apart: to look for all before the first is read lets the processor wait for several at a time.
func (w *writer) fetch(list []uint32) [][]byte {
	w.fetched = w.fetched[:0]
	for _, row := range list {
		w.fetched = append(w.fetched, w.in.Row(int(row)))
	}
	return w.fetched
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
func (w *writer) addRow(row uint32, b []byte) error {
	from := len(w.cells)
	var h rows.Head
	cells, err := rows.ReadHead(b, &h)
	if err != nil {
		return err
	}
	var name string
	if w.cells, name, err = w.mover.move(w.cells, h.Shape, cells); err != nil {
		return err
	}
	w.series = append(w.series, w.kin.add(row, &h, name))
	h.Shape, h.Resource = w.voc.shapes[h.Shape], w.voc.resources[h.Resource]
	if len(w.zones) == 0 && len(w.heads) == 0 {
		w.info.MinStart, w.info.MaxStart = h.Start, h.Start
	}
	w.info.MinStart, w.info.MaxStart = min(w.info.MinStart, h.Start), max(w.info.MaxStart, h.Start)
	w.first = append(w.first, int32(from))
	w.heads = append(w.heads, h)
	w.bytes += len(b)
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
	var zone source.BlockInfo
	w.buf, zone = w.encoder.Encode(w.buf[:0], w.voc.layout.block, w.heads, w.cells, w.first)
	if err := w.out.write(w.buf); err != nil {
		return err
	}
	w.blocks.blocks = append(w.blocks.blocks, blockPlace{length: len(w.buf), rows: len(w.heads)})
	w.zones = append(w.zones, zone)
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
	s.packed(kindZones, appendZones(nil, w.zones))
	s.plain(kindFilters, w.stripes.section)
	s.plain(kindIndex, pages)
	s.plain(kindIndexPages, directory)
	s.packed(kindSeries, w.kin.collector.AppendSeries(nil))
	s.packed(kindEdges, w.kin.collector.AppendEdges(nil))
	s.packed(kindOrphans, w.kin.collector.AppendOrphans(nil))
	s.packed(kindBlocks, w.blocks.append(nil))
	info := w.info.append(nil)
	if len(info) > maxInfo {
		return fmt.Errorf("%w: info of %d bytes", ErrTooLarge, len(info))
	}
	s.plain(kindInfo, info)
	return s.finish()
}
