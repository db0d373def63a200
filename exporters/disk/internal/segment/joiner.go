package segment

import (
	"fmt"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
)

// joiner puts traces together whose rows are in several blocks, and gives them to a writer: a trace at a time, or a block of it at a time
// if it is too large for one.
type joiner struct {
	*merger
	w          *writer
	open       openBlocks
	duplicates *duplicates
	fragments  []fragment
	strands    []strand

	arena []byte // cells of rows: of those in the block at hand of the writer, then those of the piece

	// The piece of the trace that was read last.
	heads []rows.Head
	from  int      // where its cells begin in arena
	ends  []int    // by row: where its cells end
	keys  []rowKey // in order, without duplicates
}

func newJoiner(m *merger, w *writer) *joiner {
	g := &joiner{merger: m, w: w, open: openBlocks{inputs: m.inputs, blocks: m.blocks}}
	g.duplicates = newDuplicates(m.union.tables, g)
	return g
}

// readRow implements rowSource for rows of the piece.
func (g *joiner) readRow(number uint32, h *rows.Head) (cells []byte, err error) {
	*h = g.heads[number]
	return g.cellsOf(number), nil
}

func (g *joiner) cellsOf(number uint32) []byte {
	from := g.from
	if number > 0 {
		from = g.ends[number-1]
	}
	return g.arena[from:g.ends[number]:g.ends[number]]
}

// write gives the rows of a trace to the writer.
func (g *joiner) write(t *trace) error {
	if err := g.w.room(int(t.rows), int(t.bytes), int(t.cells)); err != nil {
		return err
	}
	if g.w.large {
		return g.writeLarge(t)
	}
	return g.eachPiece(t, int(t.rows), func() error {
		g.w.begin(g.keys)
		return g.add(0)
	})
}

// writeLarge goes through the trace twice: all its rows must be known before the parent of the first is found.
func (g *joiner) writeLarge(t *trace) error {
	var all []rowKey
	err := g.eachPiece(t, g.w.opts.blockRows, func() error {
		all = append(all, g.keys...)
		return nil
	})
	if err != nil {
		return err
	}
	g.w.begin(all)
	from := 0
	return g.eachPiece(t, g.w.opts.blockRows, func() error {
		if len(g.keys) > len(all)-from || len(g.keys) > 0 && !g.keys[0].twins(&all[from]) {
			return fmt.Errorf("trace %x could be read only once", t.id)
		}
		if err := g.add(from); err != nil {
			return err
		}
		from += len(g.keys)
		return g.w.cut() // the cells of the next piece take the place of its cells
	})
}

// eachPiece reads about so many rows of the trace, visits them, and goes on with the next.
func (g *joiner) eachPiece(t *trace, limit int, visit func() error) error {
	defer g.release()
	if err := g.begin(t); err != nil {
		return err
	}
	for {
		if err := g.gather(limit); err != nil || len(g.heads) == 0 {
			return err
		}
		if err := visit(); err != nil {
			return err
		}
	}
}

// add gives the piece to the writer. Its first row is one of the trace.
func (g *joiner) add(from int) error {
	g.w.info.Duplicates += len(g.heads) - len(g.keys)
	for i, k := range g.keys {
		cells := g.cellsOf(k.row)
		if err := g.w.add(from+i, &g.heads[k.row], headBytes+len(cells), cells); err != nil {
			return err
		}
	}
	return nil
}

// gather reads the next rows of the trace, and brings them into order. It goes on beyond the limit while there may be duplicates of what it
// has.
func (g *joiner) gather(limit int) error {
	if len(g.w.heads) == 0 {
		g.arena = g.arena[:0]
	}
	g.heads, g.ends, g.keys, g.from = g.heads[:0], g.ends[:0], g.keys[:0], len(g.arena)
	for s := g.next(); s != nil; s = g.next() {
		if n := len(g.keys); n >= limit || len(g.arena)-g.from > maxBlockBytes {
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
	g.keys = sorted(g.keys, g.duplicates)
	return nil
}

// take adds the next row of a strand to the piece.
func (g *joiner) take(s *strand) error {
	h := s.head
	cells, err := g.readCells(g.arena, s.block, s.row, s.translation, &h)
	if err == nil {
		g.arena, g.ends = cells, append(g.ends, len(cells))
		g.keys = append(g.keys, keyOf(&h, uint32(len(g.heads))))
		g.heads = append(g.heads, h)
	} else if err = g.tolerate(err); err != nil {
		return err
	}
	return g.advance(s)
}
