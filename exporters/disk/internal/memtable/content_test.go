package memtable

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/exporters/disk/internal/source"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// content is the content of a store: the number of occurrences of each span, by trace. A span is
// encoded with its resource and scope.
type content map[traceKey]map[string]int

type traceKey struct {
	tenant string
	id     otlpdata.TraceID
}

func (c content) add(tenant string, r *otlpdata.Resource, sc *otlpdata.Scope, s *otlpdata.Span) {
	k := traceKey{tenant, s.TraceID}
	if c[k] == nil {
		c[k] = map[string]int{}
	}
	c[k][string(otlpdata.AppendResourceSpans(nil, r, sc, otlpdata.AppendSpan(nil, s)))]++
}

func (c content) spans() int {
	n := 0
	for _, spans := range c {
		for _, times := range spans {
			n += times
		}
	}
	return n
}

// contentOf returns the content of batches without using a table.
func contentOf(tb testing.TB, batches ...*otlpdata.Batch) content {
	tb.Helper()
	c := content{}
	for _, b := range batches {
		v := &contentVisitor{c: c, tenant: b.Meta().Tenant}
		if err := b.Walk(v); err != nil {
			tb.Fatal(err)
		}
	}
	return c
}

type contentVisitor struct {
	c        content
	tenant   string
	resource *otlpdata.Resource
	scope    *otlpdata.Scope
}

func (v *contentVisitor) Resource(r *otlpdata.Resource) error { v.resource = r; return nil }
func (v *contentVisitor) Scope(s *otlpdata.Scope) error       { v.scope = s; return nil }
func (v *contentVisitor) Span(s *otlpdata.Span) error {
	v.c.add(v.tenant, v.resource, v.scope, s)
	return nil
}

// reader decodes rows to spans.
type reader struct {
	tables *rows.Tables
	a      rows.Assembler
	cells  []rows.Cell
}

func (r *reader) add(c content, b source.Block, row int) error {
	var h rows.Head
	if err := b.Head(row, &h); err != nil {
		return err
	}
	// Read single cells before and after the whole row, and out of order.
	alone := make([]rows.Cell, len(r.tables.Shapes[h.Shape].Columns))
	for i := range alone {
		at := (i + row) % len(alone)
		var err error
		if alone[at], err = b.Cell(row, at); err != nil {
			return err
		}
	}
	var err error
	if r.cells, err = b.Cells(r.cells[:0], row); err != nil {
		return err
	}
	for i := range r.cells {
		if c, err := b.Cell(row, i); err != nil || c != r.cells[i] || alone[i] != c {
			return fmt.Errorf("row %d, cell %d: %+v from Cell, %+v from Cells, %w", row, i, alone[i], r.cells[i], err)
		}
	}
	if _, err := b.Cell(row, len(r.cells)); err == nil {
		return fmt.Errorf("row %d has more cells than columns", row)
	}
	s, err := r.a.Span(r.tables, &h, r.cells)
	if err != nil {
		return err
	}
	res := &r.tables.Resources[h.Resource]
	c.add(res.Tenant, &res.Resource, &r.tables.Scopes[r.tables.Shapes[h.Shape].Scope], s)
	return nil
}

// scan reads all blocks of a source and checks their infos.
func scan(src source.Source) (content, error) {
	tables, _ := src.Tables()
	infos, _ := src.Blocks()
	r, c := reader{tables: tables}, content{}
	for i := range infos {
		b, err := src.Open(context.Background(), i)
		if err != nil {
			return nil, err
		}
		for row := range b.Len() {
			if err := r.add(c, b, row); err != nil {
				return nil, err
			}
		}
		if err := checkInfo(src, b, i, infos[i]); err != nil {
			return nil, fmt.Errorf("block %d: %w", i, err)
		}
		b.Close()
	}
	return c, nil
}

func checkInfo(src source.Source, b source.Block, number int, info source.BlockInfo) error {
	longest := map[uint32]uint64{}
	list, known := src.BlockShapes(nil, number)
	if !known {
		return errors.New("its shapes are not known")
	}
	for _, s := range list {
		longest[s.Shape] = s.Longest.End()
	}
	shapes, err := b.Shapes()
	if err != nil {
		return err
	}
	starts, _ := b.Starts()
	ends, _ := b.Ends()
	resources, _ := b.Resources()
	if n := info.Rows; b.Len() != n || len(shapes) != n || len(starts) != n || len(ends) != n || len(resources) != n {
		return fmt.Errorf("%d rows, %d shapes, %d starts, want %d", b.Len(), len(shapes), len(starts), info.Rows)
	}
	for row, shape := range shapes {
		var h rows.Head
		if err := b.Head(row, &h); err != nil {
			return err
		}
		if h.Shape != shape || h.Start != starts[row] || h.End != ends[row] || h.Resource != resources[row] {
			return fmt.Errorf("row %d: columns differ from the head %+v", row, h)
		}
		if most, ok := longest[shape]; !ok || h.Duration() > most || h.Start < info.MinStart || h.Start > info.MaxStart {
			return fmt.Errorf("row %d: %+v is out of the bounds of the block: %+v", row, h, info)
		}
	}
	return nil
}

// traceOf reads a trace by id.
func traceOf(src source.Source, k traceKey) (map[string]int, error) {
	tables, _ := src.Tables()
	r, c := reader{tables: tables}, content{}
	err := src.Trace(context.Background(), k.tenant, k.id, func(b source.Block, found []int32) error {
		for _, row := range found {
			if err := r.add(c, b, int(row)); err != nil {
				return err
			}
		}
		return nil
	})
	if len(c) > 1 {
		return nil, fmt.Errorf("got rows of %d traces for one id", len(c))
	}
	return c[k], err
}

// checkContent compares the content of a source with the expected content, by blocks and by trace.
func checkContent(tb testing.TB, src source.Source, want content) {
	tb.Helper()
	got, err := scan(src)
	if err != nil {
		tb.Fatal(err)
	}
	if len(got) != len(want) || got.spans() != want.spans() {
		tb.Fatalf("%d spans in %d traces, want %d in %d", got.spans(), len(got), want.spans(), len(want))
	}
	for k, spans := range want {
		if !maps.Equal(got[k], spans) {
			tb.Fatalf("spans of trace %q %s differ", k.tenant, k.id)
		}
		one, err := traceOf(src, k)
		if err != nil {
			tb.Fatal(err)
		}
		if !maps.Equal(one, spans) {
			tb.Fatalf("trace %q %s by id differs: %d spans, want %d", k.tenant, k.id, len(one), len(spans))
		}
	}
}

// fill appends batches and returns their records.
func fill(tb testing.TB, t *Table, batches []*otlpdata.Batch) [][]byte {
	tb.Helper()
	var records [][]byte
	for _, b := range batches {
		for from := 0; ; {
			r, err := t.Append(b, from)
			if err != nil {
				tb.Fatal(err)
			}
			records = append(records, joined(r))
			if from += r.Spans; from == b.Len() {
				break
			}
			if r.Spans == 0 {
				tb.Fatalf("no span of a request of %d spans was added, starting with span %d", b.Len(), from)
			}
		}
	}
	return records
}

func sizeOf(r Appended) (n int) {
	for _, part := range slices.Concat(r.Records...) {
		n += len(part)
	}
	return n
}

func joined(r Appended) []byte { return slices.Concat(slices.Concat(r.Records...)...) }
