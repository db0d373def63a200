package segment

import (
	"fmt"

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
	out      output
	encoder  *block.Encoder
	buf      []byte
	kin      *kinship
	stripes  *stripes
	blocks   blockList
	zones    []source.BlockInfo
	postings []posting
	// The block at hand.
	heads []rows.Head
	cells []rows.Cell
	first []int32
	bytes int
}

func newWriter(f vfs.File, s *survey, v *vocabulary, opts Options) *writer {
	return &writer{survey: s, opts: opts, voc: v, out: output{file: f}, encoder: block.NewEncoder(opts.Level),
		kin: newKinship(s.in.Tables, s.order), stripes: newStripes(v.layout)}
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
	for _, row := range list {
		b := w.in.Row(int(row))
		if large && !w.fits(1, len(b), 0) {
			if err := w.cut(); err != nil {
				return err
			}
		}
		if err := w.addRow(row, b); err != nil {
			return err
		}
		if posted != len(w.blocks.blocks) {
			posted = len(w.blocks.blocks)
			w.postings = append(w.postings, posting{traceHash(w.lastTenant(), t.id), uint32(posted)})
		}
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
func (w *writer) addRow(row uint32, b []byte) error {
	from := len(w.cells)
	var h rows.Head
	var err error
	if w.cells, err = w.in.Tables.ReadRow(b, &h, w.cells); err != nil {
		return err
	}
	cells := w.cells[from:]
	w.kin.add(row, &h, cells)
	if err := w.voc.translate(&h, cells); err != nil {
		return err
	}
	w.stripes.add(&h, cells)
	if len(w.zones) == 0 && len(w.heads) == 0 {
		w.info.MinStart, w.info.MaxStart = h.Start, h.Start
	}
	w.info.MinStart, w.info.MaxStart = min(w.info.MinStart, h.Start), max(w.info.MaxStart, h.Start)
	w.first = append(w.first, int32(from))
	w.heads = append(w.heads, h)
	w.bytes += len(b)
	return nil
}

// cut writes the block at hand.
func (w *writer) cut() error {
	if len(w.heads) == 0 {
		return nil
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
	w.heads, w.cells, w.first, w.bytes = w.heads[:0], w.cells[:0], w.first[:0], 0
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
