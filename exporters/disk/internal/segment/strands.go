package segment

import "github.com/tracing-backend/tracing/exporters/disk/internal/rows"

// strand is the rows of a trace in one input. They are in order.
type strand struct {
	input     uint32
	fragments []fragment // the rest
	block     *heldBlock // that of the first of them
	// The next row.
	row  int
	head rows.Head // under the vocabulary of the input
}

// begin finds the strands of a trace.
func (g *joiner) begin(t *trace) error {
	g.fragments, g.strands = g.traces.appendOf(g.fragments[:0], t), g.strands[:0]
	rest := g.fragments
	for len(rest) > 0 {
		of, n := g.blocks[rest[0].block].input, 1
		for n < len(rest) && g.blocks[rest[n].block].input == of {
			n++
		}
		g.strands = append(g.strands, strand{input: of, fragments: rest[:n]})
		rest = rest[n:]
	}
	for i := range g.strands {
		if err := g.advance(&g.strands[i]); err != nil {
			return err
		}
	}
	return nil
}

// advance reads the head of the next row of a strand that can be read.
func (g *joiner) advance(s *strand) error {
	for len(s.fragments) > 0 {
		f := &s.fragments[0]
		if f.rows == 0 {
			g.leave(s)
			continue
		}
		var err error
		if s.block == nil {
			s.block, err = g.open.take(f.block)
		}
		if err != nil {
			f.rows = 0
		} else {
			s.row = int(f.first)
			f.first, f.rows = f.first+1, f.rows-1
			if err = s.block.Head(s.row, &s.head); err == nil {
				return nil
			}
		}
		if err = g.tolerate(err); err != nil {
			return err
		}
	}
	return nil
}

// leave goes to the next fragment.
func (g *joiner) leave(s *strand) {
	if s.block != nil {
		g.open.done(s.block)
	}
	s.block, s.fragments = nil, s.fragments[1:]
}

// release gives up what is left of the strands.
func (g *joiner) release() {
	for i := range g.strands {
		for len(g.strands[i].fragments) > 0 {
			g.leave(&g.strands[i])
		}
	}
}

// next returns the strand with the first row in order, that of the earlier input if they are equal; nil if there are no more rows.
func (g *joiner) next() *strand {
	var first *strand
	for i := range g.strands {
		s := &g.strands[i]
		if len(s.fragments) > 0 && (first == nil || s.before(first)) {
			first = s
		}
	}
	return first
}

func (s *strand) before(t *strand) bool {
	return s.head.Start < t.head.Start || s.head.Start == t.head.Start && spanKey(s.head.SpanID) < spanKey(t.head.SpanID)
}
