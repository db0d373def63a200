package segment

import (
	"fmt"
	"math"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
)

// joiner puts traces together whose rows are in several blocks, and gives them to a writer: a trace at a time, or a block of it at a time
// if it is too large for one.
type joiner struct {
	*merger
	w          *writer
	movers     []*cellMover // by input; made when first needed
	left       []int        // by input: rows that were not moved yet; less than none where large traces are read twice
	open       openBlocks
	duplicates *duplicates
	fragments  []fragment
	strands    []strand

	// The piece of the trace that was read last: rows of the segment.
	heads []rows.Head
	from  []rowPlace
	cells []rows.Cell
	ends  []int    // by row: where its cells end
	bytes []int    // by row
	total int      // bytes of all rows
	keys  []rowKey // in order, without duplicates

	read   []rows.Cell // scratch: cells of an input
	failed error       // to read a row once more
}

// rowPlace is where a row comes from.
type rowPlace struct{ block, row uint32 }

func newJoiner(m *merger, w *writer) *joiner {
	g := &joiner{merger: m, w: w, open: openBlocks{inputs: m.inputs, blocks: m.blocks},
		movers: make([]*cellMover, len(m.inputs)), left: make([]int, len(m.inputs))}
	for i := range m.traces.fragments {
		f := &m.traces.fragments[i]
		g.left[m.blocks[f.block].input] += int(f.rows)
	}
	g.duplicates = newDuplicates(g)
	return g
}

// readRow implements rowSource for rows of the piece: as the input has them.
func (g *joiner) readRow(number uint32, h *rows.Head, dst []rows.Cell) (*rows.Tables, []rows.Cell, error) {
	at := g.from[number]
	t, err := g.inputs[g.blocks[at.block].input].Tables()
	var b *heldBlock
	if err == nil {
		b, err = g.open.take(at.block)
	}
	if err == nil {
		defer g.open.done(b)
		err = b.Head(int(at.row), h)
	}
	if err == nil {
		dst, err = b.Cells(dst, int(at.row))
	}
	if err != nil && g.failed == nil {
		g.failed = err
	}
	return t, dst, err
}

func (g *joiner) cellsOf(number uint32) []rows.Cell {
	from := 0
	if number > 0 {
		from = g.ends[number-1]
	}
	return g.cells[from:g.ends[number]]
}

// write gives the rows of a trace to the writer.
func (g *joiner) write(t *trace) error {
	defer g.release()
	if err := g.begin(t); err != nil {
		return err
	}
	most := 2 * g.w.opts.blockRows
	if err := g.gather(most); err != nil {
		return err
	}
	if int(t.rows) > most || g.next() != nil {
		return g.writeLarge(t)
	}
	if err := g.w.room(len(g.keys), g.total, len(g.cells)); err != nil {
		return err
	}
	g.w.begin(g.keys)
	return g.add(0)
}

// writeLarge goes through the trace twice: all its rows must be known before the parent of the first is found. The first piece was read.
func (g *joiner) writeLarge(t *trace) error {
	var all []rowKey
	for len(g.heads) > 0 {
		all = append(all, g.keys...)
		if err := g.gather(g.w.opts.blockRows); err != nil {
			return err
		}
	}
	if err := g.w.room(math.MaxInt, 0, 0); err != nil {
		return err
	}
	g.w.begin(all)
	g.release()
	if err := g.begin(t); err != nil {
		return err
	}
	for from := 0; ; from += len(g.keys) {
		if err := g.gather(g.w.opts.blockRows); err != nil || len(g.heads) == 0 {
			return err
		}
		if len(g.keys) > len(all)-from || len(g.keys) > 0 && !g.keys[0].twins(&all[from]) {
			return fmt.Errorf("trace %x could be read only once", t.id)
		}
		if err := g.add(from); err != nil {
			return err
		}
	}
}

// add gives the piece to the writer. Its first row is one of the trace.
func (g *joiner) add(from int) error {
	g.w.info.Duplicates += len(g.heads) - len(g.keys)
	for i, k := range g.keys {
		if err := g.w.addMoved(from+i, &g.heads[k.row], g.bytes[k.row], g.cellsOf(k.row)); err != nil {
			return err
		}
	}
	return nil
}

// gather reads the next rows of the trace, and brings them into order. It goes on beyond the limits while there may be duplicates of what
// it has.
func (g *joiner) gather(limit int) error {
	g.heads, g.from, g.cells, g.ends = g.heads[:0], g.from[:0], g.cells[:0], g.ends[:0]
	g.bytes, g.total, g.keys = g.bytes[:0], 0, g.keys[:0]
	for s := g.next(); s != nil; s = g.next() {
		if n := len(g.keys); n >= limit || g.total > maxBlockBytes || len(g.cells) > maxBlockCells {
			if next := keyOf(&s.head, 0); !next.twins(&g.keys[n-1]) {
				break
			}
		}
		if err := g.take(s); err != nil {
			return err
		}
		if err := g.pace(); err != nil {
			return err
		}
	}
	g.failed = nil
	g.keys = sorted(g.keys, g.duplicates)
	return g.tolerate(g.failed)
}

// take adds the next row of a strand to the piece.
func (g *joiner) take(s *strand) error {
	if err := g.tolerate(g.move(s)); err != nil {
		return err
	}
	return g.advance(s)
}

// move makes the next row of a strand one of the segment, and the last of the piece.
func (g *joiner) move(s *strand) error {
	var err error
	var all bool
	if g.read, all, err = s.block.cells(g.read[:0], s.row); err != nil {
		return err
	}
	h, bytes := s.head, 0
	if g.cells, bytes, err = g.mover(s.input).move(g.cells, &h, g.read, all); err != nil {
		return err
	}
	if g.left[s.input]--; g.left[s.input] == 0 {
		g.movers[s.input] = nil
	}
	number := uint32(len(g.heads))
	g.keys, g.heads = append(g.keys, keyOf(&h, number)), append(g.heads, h)
	g.from, g.ends = append(g.from, rowPlace{s.block.number, uint32(s.row)}), append(g.ends, len(g.cells))
	g.bytes, g.total = append(g.bytes, bytes), g.total+bytes
	return nil
}

// mover returns the mover of an input. As the inputs follow each other in time, few are needed at a time.
func (g *joiner) mover(input uint32) *cellMover {
	if g.movers[input] == nil {
		g.movers[input] = newCellMover(&g.inputs[input], g.union.tables, g.w.voc)
	}
	return g.movers[input]
}
