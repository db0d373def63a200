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

// selection says which spans are wanted. The zero value wants all.
type selection struct {
	from, to time.Time // of the span's start, to exclusive; zero: no bound
	tenant   *string   // nil: all
	service  string    // "": all
}

// bounds returns the bounds as nanoseconds, both inclusive.
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

func (s *selection) wants(shape *rows.Shape) bool {
	return (s.tenant == nil || *s.tenant == shape.Tenant) && (s.service == "" || s.service == shape.Service)
}

// record is a span with what it belongs to. It is valid until the next one is read, but for its texts.
type record struct {
	tenant   string
	resource *otlpdata.Resource
	scope    *otlpdata.Scope
	span     *otlpdata.Span
}

// walker goes through all spans of a store, source by source, each in its own order, which for segments is that of traces by their start.
// Of spans that are the same in all they have it gives one.
type walker struct {
	selection
	sources []source.Source
	ordered int // so many of the sources, the first ones, hold no duplicates
	emit    func(*record) error
	step    func()
	passed  int64 // spans that were looked at, or passed over

	duplicates int
	damage     []Damage
	lost       int // spans that could not be read, as far as it is known

	at     int // the source at hand
	wants  []bool
	shapes []source.BlockShape // scratch
	// others are the sources before that may have spans of the block at hand, too.
	others []source.Source
	nearby nearby   // what the block at hand has
	known  contents // what was given out of it, by this source or others
	head   rows.Head
	cells  []rows.Cell
	span   rows.Assembler
	out    record
}

// walk fails with ctx and with emit. What cannot be read is left out and noted.
func (w *walker) walk(ctx context.Context) error {
	from, to := w.bounds()
	for w.at = range w.sources {
		src := w.sources[w.at]
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
		w.wants = w.wants[:0]
		for i := range tables.Shapes {
			w.wants = append(w.wants, w.selection.wants(&tables.Shapes[i]))
		}
		if err := w.source(ctx, src, tables); err != nil {
			return err
		}
	}
	return nil
}

// source goes through the blocks of a source.
func (w *walker) source(ctx context.Context, src source.Source, tables *rows.Tables) error {
	blocks, err := src.Blocks()
	if err != nil {
		n, _, _ := src.Bounds()
		w.note(src, n, err)
		return nil
	}
	from, to := w.bounds()
	done := map[traceKey]struct{}{}
	_, first, last := src.Bounds()
	w.overlap(first, last)
	for i := range blocks {
		info := &blocks[i]
		w.passed += int64(info.Rows)
		if info.MaxStart < from || info.MinStart > to || !w.wanted(src, i) {
			continue
		}
		w.step()
		b, err := src.Open(ctx, i)
		if err == nil {
			if w.at < w.ordered {
				w.overlap(info.MinStart, info.MaxStart)
				err = w.block(ctx, tables, b)
			} else {
				err = w.unordered(ctx, tables, b, done)
			}
			b.Close()
		}
		if err = w.pass(ctx, src, info.Rows, err); err != nil {
			return err
		}
	}
	return nil
}

// pass notes damage, and returns any other error.
func (w *walker) pass(ctx context.Context, src source.Source, spans int, err error) error {
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

// wanted reports whether a block has a shape that is wanted.
func (w *walker) wanted(src source.Source, number int) bool {
	var known bool
	w.shapes, known = src.BlockShapes(w.shapes[:0], number)
	return !known || slices.ContainsFunc(w.shapes, func(s source.BlockShape) bool { return w.wants[s.Shape] })
}

// block goes through a block in which the rows of a trace follow each other. There are no duplicates in the source.
func (w *walker) block(ctx context.Context, tables *rows.Tables, b source.Block) error {
	w.nearby.begin()
	w.known.forget()
	for row := range b.Len() {
		if err := b.Head(row, &w.head); err != nil {
			return err
		}
		w.nearby.add(tables.Resources[w.head.Resource].Tenant, &w.head, true)
	}
	if err := w.elsewhere(ctx); err != nil {
		return err
	}
	for row := range b.Len() {
		if err := w.row(tables, b, row); err != nil {
			return err
		}
	}
	return nil
}

// unordered goes through the traces that a block of a memtable has the first rows of. done are the traces of the blocks before.
func (w *walker) unordered(ctx context.Context, tables *rows.Tables, b source.Block, done map[traceKey]struct{}) error {
	w.nearby.begin()
	w.known.forget()
	w.known.begin()
	for row := range b.Len() {
		if err := b.Head(row, &w.head); err != nil {
			return err
		}
		key := traceKey{tables.Resources[w.head.Resource].Tenant, w.head.TraceID}
		if _, known := done[key]; !known {
			done[key] = struct{}{}
			w.nearby.add(key.tenant, &w.head, false)
		}
	}
	if err := w.elsewhere(ctx); err != nil {
		return err
	}
	return w.nearby.each(ctx, w.sources[w.at], func(b source.Block, list []int32) error {
		for _, row := range list {
			if err := w.row(tables, b, int(row)); err != nil {
				return err
			}
		}
		return nil
	})
}

// overlap finds the others by the bounds of starts. Spans that are the same start at the same time.
func (w *walker) overlap(first, last uint64) {
	w.others = w.others[:0]
	for _, src := range w.sources[:w.at] {
		if n, begin, end := src.Bounds(); n > 0 && begin <= last && end >= first {
			w.others = append(w.others, src)
		}
	}
}

// elsewhere remembers what the others have of the spans nearby, so that they are not given out again. What cannot be read of them was noted
// when they were walked.
func (w *walker) elsewhere(ctx context.Context) error {
	for _, src := range w.others {
		tables, err := src.Tables()
		if err != nil {
			continue
		}
		err = w.nearby.each(ctx, src, func(b source.Block, list []int32) error {
			for _, row := range list {
				if err := b.Head(int(row), &w.head); err != nil {
					return err
				}
				if !w.nearby.may(&w.head) {
					continue
				}
				r, err := w.read(tables, b, int(row))
				if err != nil {
					return err
				}
				w.known.begin()
				w.known.add(r)
			}
			return nil
		})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		_ = err
	}
	return nil
}

// row gives out the span of a row, if it is wanted and new.
func (w *walker) row(tables *rows.Tables, b source.Block, row int) error {
	h := &w.head
	if err := b.Head(row, h); err != nil {
		return err
	}
	from, to := w.bounds()
	if !w.wants[h.Shape] || h.Start < from || h.Start > to {
		return nil
	}
	r, err := w.read(tables, b, row)
	if err != nil {
		return err
	}
	if !w.known.add(r) {
		w.duplicates++
		return nil
	}
	return w.emit(r)
}

// read puts the span of the row whose head was read together.
func (w *walker) read(tables *rows.Tables, b source.Block, row int) (*record, error) {
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
