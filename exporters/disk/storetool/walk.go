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

// walker reads all spans of a store, source by source, in the order of each source. Segments are
// ordered by the start of traces. Of duplicates it emits only the first.
type walker struct {
	selection selection
	sources   []source.Source
	ordered   int // number of leading sources that have no duplicates within themselves
	emit      func(*record) error
	step      func()
	passed    int64 // spans read or skipped

	duplicates int
	damage     []Damage
	lost       int // unreadable spans, as far as known

	current  int                 // index of the current source
	selected []bool              // by shape of the current source
	shapes   []source.BlockShape // scratch
	// overlapping are the earlier sources that may have duplicates of spans in the current block.
	overlapping []source.Source
	traces      blockTraces // traces of the current block
	known       contents    // spans of these traces that were emitted
	head        rows.Head
	cells       []rows.Cell
	span        rows.Assembler
	out         record
}

// walk calls emit for each span. It fails if ctx is done or emit fails. Unreadable spans are
// skipped and recorded as damage.
func (w *walker) walk(ctx context.Context) error {
	from, to := w.selection.bounds()
	for w.current = range w.sources {
		src := w.sources[w.current]
		n, first, last := src.Bounds()
		if n == 0 || last < from || first > to {
			w.passed += int64(n)
			continue
		}
		tables, err := src.Tables()
		if err != nil {
			w.note(src, n, err)
			continue
		}
		w.selected = w.selected[:0]
		for i := range tables.Shapes {
			w.selected = append(w.selected, w.selection.includes(&tables.Shapes[i]))
		}
		if err := w.source(ctx, src, tables); err != nil {
			return err
		}
	}
	return nil
}

// source reads the blocks of a source.
func (w *walker) source(ctx context.Context, src source.Source, tables *rows.Tables) error {
	blocks, err := src.Blocks()
	if err != nil {
		n, _, _ := src.Bounds()
		w.note(src, n, err)
		return nil
	}
	from, to := w.selection.bounds()
	done := map[traceKey]struct{}{}
	_, first, last := src.Bounds()
	w.findOverlapping(first, last)
	for i := range blocks {
		info := &blocks[i]
		w.passed += int64(info.Rows)
		if info.MaxStart < from || info.MinStart > to || !w.selects(src, i) {
			continue
		}
		w.step()
		b, err := src.Open(ctx, i)
		if err == nil {
			if w.current < w.ordered {
				w.findOverlapping(info.MinStart, info.MaxStart)
				err = w.block(ctx, tables, b)
			} else {
				err = w.unordered(ctx, tables, b, done)
			}
			b.Close()
		}
		if err = w.recordDamage(ctx, src, info.Rows, err); err != nil {
			return err
		}
	}
	return nil
}

// recordDamage records err if it means damage, and returns it otherwise.
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

// selects reports whether a block may have selected spans, by its shapes.
func (w *walker) selects(src source.Source, number int) bool {
	var known bool
	w.shapes, known = src.BlockShapes(w.shapes[:0], number)
	return !known || slices.ContainsFunc(w.shapes, func(s source.BlockShape) bool { return w.selected[s.Shape] })
}

// block emits the spans of a block of a segment, whose rows are ordered by trace and which has no
// duplicates within itself.
func (w *walker) block(ctx context.Context, tables *rows.Tables, b source.Block) error {
	w.traces.reset()
	w.known.reset()
	for row := range b.Len() {
		if err := b.Head(row, &w.head); err != nil {
			return err
		}
		w.traces.add(tables.Resources[w.head.Resource].Tenant, &w.head, true)
	}
	if err := w.recordEmitted(ctx); err != nil {
		return err
	}
	for row := range b.Len() {
		if err := w.emitRow(tables, b, row); err != nil {
			return err
		}
	}
	return nil
}

// unordered emits the traces whose first rows are in a block of a memtable. done holds the traces
// of earlier blocks.
func (w *walker) unordered(ctx context.Context, tables *rows.Tables, b source.Block, done map[traceKey]struct{}) error {
	w.traces.reset()
	w.known.reset()
	w.known.enable()
	for row := range b.Len() {
		if err := b.Head(row, &w.head); err != nil {
			return err
		}
		key := traceKey{tables.Resources[w.head.Resource].Tenant, w.head.TraceID}
		if _, known := done[key]; !known {
			done[key] = struct{}{}
			w.traces.add(key.tenant, &w.head, false)
		}
	}
	if err := w.recordEmitted(ctx); err != nil {
		return err
	}
	return w.traces.each(ctx, w.sources[w.current], func(b source.Block, list []int32) error {
		for _, row := range list {
			if err := w.emitRow(tables, b, int(row)); err != nil {
				return err
			}
		}
		return nil
	})
}

// findOverlapping sets the overlapping sources of a time range. Duplicates have the same start
// time.
func (w *walker) findOverlapping(first, last uint64) {
	w.overlapping = w.overlapping[:0]
	for _, src := range w.sources[:w.current] {
		if n, begin, end := src.Bounds(); n > 0 && begin <= last && end >= first {
			w.overlapping = append(w.overlapping, src)
		}
	}
}

// recordEmitted records the spans of the current traces that earlier sources have, so that they are
// not emitted again. Damage in these sources was recorded when they were read.
func (w *walker) recordEmitted(ctx context.Context) error {
	for _, src := range w.overlapping {
		tables, err := src.Tables()
		if err != nil {
			continue
		}
		_ = w.traces.each(ctx, src, func(b source.Block, list []int32) error {
			for _, row := range list {
				if err := b.Head(int(row), &w.head); err != nil {
					return err
				}
				if !w.traces.mayHave(&w.head) {
					continue
				}
				r, err := w.assemble(tables, b, int(row))
				if err != nil {
					return err
				}
				w.known.enable()
				w.known.add(r)
			}
			return nil
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// emitRow emits the span of a row if it is selected and not a duplicate.
func (w *walker) emitRow(tables *rows.Tables, b source.Block, row int) error {
	h := &w.head
	if err := b.Head(row, h); err != nil {
		return err
	}
	from, to := w.selection.bounds()
	if !w.selected[h.Shape] || h.Start < from || h.Start > to {
		return nil
	}
	r, err := w.assemble(tables, b, row)
	if err != nil {
		return err
	}
	if !w.known.add(r) {
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
