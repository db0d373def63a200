package segment

import (
	"fmt"
	"math"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
)

// traceMerger joins the rows of traces from several blocks and passes them to a writer: a whole
// trace at a time, or part by part if the trace is too large for a block.
type traceMerger struct {
	merger      *merger
	w           *writer
	converters  []*mergeConverter // by input; created when needed
	remaining   []int             // by input: number of rows not converted yet; negative if large traces are read twice
	open        blockCache
	duplicates  *duplicates
	fragments   []fragment
	traceInputs []traceInput

	// The part of the trace that was read last, as rows of the segment.
	heads []rows.Head
	from  []rowLocation
	cells []rows.Cell
	ends  []int    // by row: end of its cells
	bytes []int    // by row: size
	total int      // sum of bytes
	keys  []rowKey // sorted, without duplicates

	read    []rows.Cell // scratch: cells of an input
	readErr error       // error of rereading a row
}

// rowLocation locates a row in the inputs.
type rowLocation struct{ block, row uint32 }

func newTraceMerger(m *merger, w *writer) *traceMerger {
	g := &traceMerger{merger: m, w: w, open: blockCache{inputs: m.inputs, blocks: m.blocks},
		converters: make([]*mergeConverter, len(m.inputs)), remaining: make([]int, len(m.inputs))}
	for i := range m.traces.fragments {
		f := &m.traces.fragments[i]
		g.remaining[m.blocks[f.block].input] += int(f.rows)
	}
	g.duplicates = newDuplicates(g)
	return g
}

// readRow implements rowLookup for rows of the current part, as they are in the input.
func (g *traceMerger) readRow(number uint32, h *rows.Head, dst []rows.Cell) (*rows.Tables, []rows.Cell, error) {
	at := g.from[number]
	t, err := g.merger.inputs[g.merger.blocks[at.block].input].Tables()
	var b *cachedBlock
	if err == nil {
		b, err = g.open.acquire(at.block)
	}
	if err == nil {
		defer g.open.release(b)
		err = b.Head(int(at.row), h)
	}
	if err == nil {
		dst, err = b.Cells(dst, int(at.row))
	}
	if err != nil && g.readErr == nil {
		g.readErr = err
	}
	return t, dst, err
}

func (g *traceMerger) cellsOf(number uint32) []rows.Cell {
	from := 0
	if number > 0 {
		from = g.ends[number-1]
	}
	return g.cells[from:g.ends[number]]
}

// write passes the rows of a trace to the writer.
func (g *traceMerger) write(t *trace) error {
	defer g.closeInputs()
	if err := g.openInputs(t); err != nil {
		return err
	}
	maxRows := 2 * g.w.opts.blockRows
	if err := g.readPart(maxRows); err != nil {
		return err
	}
	if int(t.rows) > maxRows || g.nextInput() != nil {
		return g.writeLargeTrace(t)
	}
	if err := g.w.reserve(len(g.keys), g.total, len(g.cells)); err != nil {
		return err
	}
	g.w.beginTrace(g.keys)
	return g.writePart(0)
}

// writeLargeTrace reads the trace twice, because the parent of the first row can be resolved only
// when all rows are known. The first part is already read.
func (g *traceMerger) writeLargeTrace(t *trace) error {
	var all []rowKey
	for len(g.heads) > 0 {
		all = append(all, g.keys...)
		if err := g.readPart(g.w.opts.blockRows); err != nil {
			return err
		}
	}
	if err := g.w.reserve(math.MaxInt, 0, 0); err != nil {
		return err
	}
	g.w.beginTrace(all)
	g.closeInputs()
	if err := g.openInputs(t); err != nil {
		return err
	}
	for from := 0; ; from += len(g.keys) {
		if err := g.readPart(g.w.opts.blockRows); err != nil || len(g.heads) == 0 {
			return err
		}
		if len(g.keys) > len(all)-from || len(g.keys) > 0 && !g.keys[0].mayDuplicate(&all[from]) {
			return fmt.Errorf("trace %x changed between two reads", t.id)
		}
		if err := g.writePart(from); err != nil {
			return err
		}
	}
}

// writePart passes the current part to the writer. Its first row has index from in the trace.
func (g *traceMerger) writePart(from int) error {
	g.w.info.Duplicates += len(g.heads) - len(g.keys)
	for i, k := range g.keys {
		if err := g.w.addConverted(from+i, &g.heads[k.row], g.bytes[k.row], g.cellsOf(k.row)); err != nil {
			return err
		}
	}
	return nil
}

// readPart reads the next rows of the trace and sorts them. It exceeds the limits if the next rows
// may be duplicates of rows of the part.
func (g *traceMerger) readPart(limit int) error {
	g.heads, g.from, g.cells, g.ends = g.heads[:0], g.from[:0], g.cells[:0], g.ends[:0]
	g.bytes, g.total, g.keys = g.bytes[:0], 0, g.keys[:0]
	for s := g.nextInput(); s != nil; s = g.nextInput() {
		if n := len(g.keys); n >= limit || g.total > maxBlockBytes || len(g.cells) > maxBlockCells {
			if next := keyOf(&s.head, 0); !next.mayDuplicate(&g.keys[n-1]) {
				break
			}
		}
		if err := g.addRow(s); err != nil {
			return err
		}
		if err := g.merger.pace(); err != nil {
			return err
		}
	}
	g.readErr = nil
	g.keys = sorted(g.keys, g.duplicates)
	return g.merger.tolerate(g.readErr)
}

// addRow adds the next row of an input to the part.
func (g *traceMerger) addRow(s *traceInput) error {
	if err := g.merger.tolerate(g.convertRow(s)); err != nil {
		return err
	}
	return g.advance(s)
}

// convertRow converts the next row of an input and appends it to the part.
func (g *traceMerger) convertRow(s *traceInput) error {
	var err error
	var all bool
	if g.read, all, err = s.block.cells(g.read[:0], s.row); err != nil {
		return err
	}
	h, bytes := s.head, 0
	if g.cells, bytes, err = g.inputConverter(s.input).convert(g.cells, &h, g.read, all); err != nil {
		return err
	}
	if g.remaining[s.input]--; g.remaining[s.input] == 0 {
		g.converters[s.input] = nil
	}
	number := uint32(len(g.heads))
	g.keys, g.heads = append(g.keys, keyOf(&h, number)), append(g.heads, h)
	g.from, g.ends = append(g.from, rowLocation{s.block.number, uint32(s.row)}), append(g.ends, len(g.cells))
	g.bytes, g.total = append(g.bytes, bytes), g.total+bytes
	return nil
}

// inputConverter returns the converter of an input. The inputs are mostly consecutive in time, so
// that only few converters exist at a time.
func (g *traceMerger) inputConverter(input uint32) *mergeConverter {
	if g.converters[input] == nil {
		g.converters[input] = newMergeConverter(&g.merger.inputs[input], g.merger.tables.Tables(), g.w.voc)
	}
	return g.converters[input]
}

// traceInput iterates over the sorted rows of a trace in one input.
type traceInput struct {
	input     uint32
	fragments []fragment   // remaining ones
	block     *cachedBlock // of the first fragment
	// The next row.
	row  int
	head rows.Head // with ids of the input
}

// openInputs finds the inputs with rows of a trace.
func (g *traceMerger) openInputs(t *trace) error {
	g.fragments, g.traceInputs = g.merger.traces.appendOf(g.fragments[:0], t), g.traceInputs[:0]
	rest := g.fragments
	for len(rest) > 0 {
		of, n := g.merger.blocks[rest[0].block].input, 1
		for n < len(rest) && g.merger.blocks[rest[n].block].input == of {
			n++
		}
		g.traceInputs = append(g.traceInputs, traceInput{input: of, fragments: rest[:n]})
		rest = rest[n:]
	}
	for i := range g.traceInputs {
		if err := g.advance(&g.traceInputs[i]); err != nil {
			return err
		}
	}
	return nil
}

// advance reads the head of the next readable row of an input.
func (g *traceMerger) advance(s *traceInput) error {
	for len(s.fragments) > 0 {
		f := &s.fragments[0]
		if f.rows == 0 {
			g.nextFragment(s)
			continue
		}
		var err error
		if s.block == nil {
			s.block, err = g.open.acquire(f.block)
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
		if err = g.merger.tolerate(err); err != nil {
			return err
		}
	}
	return nil
}

// nextFragment moves to the next fragment.
func (g *traceMerger) nextFragment(s *traceInput) {
	if s.block != nil {
		g.open.release(s.block)
	}
	s.block, s.fragments = nil, s.fragments[1:]
}

// closeInputs releases the remaining fragments of all inputs.
func (g *traceMerger) closeInputs() {
	for i := range g.traceInputs {
		for len(g.traceInputs[i].fragments) > 0 {
			g.nextFragment(&g.traceInputs[i])
		}
	}
}

// nextInput returns the input with the next row in order, preferring earlier inputs if rows are
// equal. It returns nil if there are no more rows.
func (g *traceMerger) nextInput() *traceInput {
	var first *traceInput
	for i := range g.traceInputs {
		s := &g.traceInputs[i]
		if len(s.fragments) > 0 && (first == nil || s.before(first)) {
			first = s
		}
	}
	return first
}

func (s *traceInput) before(t *traceInput) bool {
	return s.head.Start < t.head.Start || s.head.Start == t.head.Start && spanKey(s.head.SpanID) < spanKey(t.head.SpanID)
}
