package storetool

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// selection selects spans. The zero value selects all.
type selection struct {
	from, to time.Time // start times; to is exclusive; zero means no limit
	tenant   *string   // nil selects all
	service  string    // "" selects all
}

// bounds returns the time range in nanoseconds, both ends inclusive.
func (s *selection) bounds() (from, to uint64) {
	to = math.MaxUint64
	if !s.from.IsZero() {
		from = uint64(max(s.from.UnixNano(), 0))
	}
	if !s.to.IsZero() {
		to = uint64(max(s.to.UnixNano(), 1)) - 1
	}
	return from, to
}

// includes reports whether the spans of a shape have the selected tenant and service.
func (s *selection) includes(shape *rows.Shape) bool {
	return (s.tenant == nil || *s.tenant == shape.Tenant) && (s.service == "" || s.service == shape.Service)
}

// record is a span with its tenant, resource and scope. It is valid until the next one is read; its
// strings stay valid.
type record struct {
	tenant   string
	resource *otlpdata.Resource
	scope    *otlpdata.Scope
	span     *otlpdata.Span
}

// walker reads all spans of a store window by window, and in each window source by source, in the
// order of each source. Segments are ordered by the start of traces. It emits only the first of
// several duplicates.
type walker struct {
	selection selection
	sources   []source.Source
	ordered   int // number of leading sources that have no duplicates within themselves
	maxKnown  int // see maxKnownSpans
	emit      func(*record) error
	step      func()
	passed    int64 // spans read or skipped

	duplicates int
	damage     []Damage
	lost       int // unreadable spans, as far as known

	inputs   []*input
	window   window
	shared   bool                // the current block may have duplicates of other spans
	selected []bool              // by shape of the current source
	shapes   []source.BlockShape // scratch
	known    contents            // emitted spans of shared blocks that start in the window
	head     rows.Head
	cells    []rows.Cell
	span     rows.Assembler
	out      record
}

// input is a source that has selected spans.
type input struct {
	source.Source
	ordered bool // rows are ordered by trace, and none are duplicates
	blocks  []source.BlockInfo
	shared  []bool       // by block: spans may have duplicates
	damaged map[int]bool // blocks whose damage was recorded
}

// walk calls emit for each span. It fails if ctx ends or emit fails. Unreadable spans are skipped
// and recorded as damage.
func (w *walker) walk(ctx context.Context) error {
	w.open()
	windows, err := w.windows(ctx)
	if err != nil {
		return err
	}
	for _, w.window = range windows {
		w.known.reset()
		for _, in := range w.inputs {
			if err := w.read(ctx, in); err != nil {
				return err
			}
		}
	}
	return nil
}

// open lists the blocks of the sources that have selected spans.
func (w *walker) open() {
	from, to := w.selection.bounds()
	for i, src := range w.sources {
		n, first, last := src.Bounds()
		if n == 0 || last < from || first > to {
			w.passed += int64(n)
			continue
		}
		blocks, err := src.Blocks()
		if err != nil {
			w.note(src, n, err)
			continue
		}
		w.inputs = append(w.inputs, &input{Source: src, ordered: i < w.ordered, blocks: blocks, damaged: map[int]bool{}})
	}
	findShared(w.inputs)
}

// read emits the spans of a source that start in the window.
func (w *walker) read(ctx context.Context, in *input) error {
	var tables *rows.Tables
	done := map[traceKey]struct{}{}
	for i := range in.blocks {
		info := &in.blocks[i]
		if w.window.includes(info.MaxStart) {
			w.passed += int64(info.Rows)
		}
		if !w.wanted(info) || in.damaged[i] {
			continue
		}
		if tables == nil {
			var err error
			if tables, err = in.Tables(); err != nil {
				n, _, _ := in.Bounds()
				w.note(in, n, err)
				in.blocks = nil
				return nil
			}
			w.selectShapes(tables)
		}
		if !w.selects(in, i) {
			continue
		}
		w.step()
		err := w.block(ctx, in, i, tables, done)
		in.damaged[i] = err != nil
		if err = w.recordDamage(ctx, in, info.Rows, err); err != nil {
			return err
		}
	}
	return nil
}

// wanted reports whether a block may have selected spans that start in the window.
func (w *walker) wanted(info *source.BlockInfo) bool {
	from, to := w.selection.bounds()
	return info.MaxStart >= max(from, w.window.from) && info.MinStart <= min(to, w.window.to)
}

func (w *walker) selectShapes(tables *rows.Tables) {
	w.selected = w.selected[:0]
	for i := range tables.Shapes {
		w.selected = append(w.selected, w.selection.includes(&tables.Shapes[i]))
	}
}

// recordDamage records err if it is damage, and returns it otherwise.
func (w *walker) recordDamage(ctx context.Context, src source.Source, spans int, err error) error {
	d := (*source.DamageError)(nil)
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.As(err, &d) || errors.Is(err, rows.ErrCorrupt) {
		w.note(src, spans, err)
		return nil
	}
	return err
}

func (w *walker) note(src source.Source, spans int, err error) {
	n := Damage{File: src.Name(), Spans: spans, Error: err.Error()}
	if d := (*source.DamageError)(nil); errors.As(err, &d) {
		n = Damage{d.File, d.Part, d.Rows, d.Err.Error()}
	}
	w.damage = append(w.damage, n)
	w.lost += n.Spans
}

// selects reports whether a block may have selected spans, according to its shapes.
func (w *walker) selects(src source.Source, number int) bool {
	var known bool
	w.shapes, known = src.BlockShapes(w.shapes[:0], number)
	return !known || slices.ContainsFunc(w.shapes, func(s source.BlockShape) bool { return w.selected[s.Shape] })
}

// block emits the spans of a block. done holds the traces of an unordered source that were already
// emitted.
func (w *walker) block(ctx context.Context, in *input, number int, tables *rows.Tables, done map[traceKey]struct{}) error {
	b, err := in.Open(ctx, number)
	if err != nil {
		return err
	}
	defer b.Close()
	w.shared = in.shared[number]
	if !in.ordered {
		return w.unordered(ctx, in, tables, b, done)
	}
	for row := range b.Len() {
		if err := w.emitRow(tables, b, row); err != nil {
			return err
		}
	}
	return nil
}

// unordered emits the traces whose first rows are in a block of a memtable.
func (w *walker) unordered(ctx context.Context, in *input, tables *rows.Tables, b source.Block, done map[traceKey]struct{}) error {
	traces := blockTraces{}
	for row := range b.Len() {
		if err := b.Head(row, &w.head); err != nil {
			return err
		}
		key := traceKey{tables.Resources[w.head.Resource].Tenant, w.head.TraceID}
		if _, known := done[key]; !known {
			done[key] = struct{}{}
			traces[key.tenant] = append(traces[key.tenant], key.id)
		}
	}
	return traces.each(ctx, in.Source, func(b source.Block, list []int32) error {
		for _, row := range list {
			if err := w.emitRow(tables, b, int(row)); err != nil {
				return err
			}
		}
		return nil
	})
}

// emitRow emits the span of a row if it is selected and not a duplicate.
func (w *walker) emitRow(tables *rows.Tables, b source.Block, row int) error {
	h := &w.head
	if err := b.Head(row, h); err != nil {
		return err
	}
	from, to := w.selection.bounds()
	if !w.selected[h.Shape] || h.Start < from || h.Start > to || !w.window.includes(h.Start) {
		return nil
	}
	r, err := w.assemble(tables, b, row)
	if err != nil {
		return err
	}
	if w.shared && !w.known.add(r) {
		w.duplicates++
		return nil
	}
	return w.emit(r)
}

// assemble returns the span of a row whose head has been read.
func (w *walker) assemble(tables *rows.Tables, b source.Block, row int) (*record, error) {
	h := &w.head
	var err error
	if w.cells, err = b.Cells(w.cells[:0], row); err != nil {
		return nil, err
	}
	span, err := w.span.Span(tables, h, w.cells)
	if err != nil {
		return nil, fmt.Errorf("row %d: %w", row, err)
	}
	res := &tables.Resources[h.Resource]
	w.out = record{res.Tenant, &res.Resource, &tables.Scopes[tables.Shapes[h.Shape].Scope], span}
	return &w.out, nil
}
