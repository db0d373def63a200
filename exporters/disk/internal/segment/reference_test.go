package segment

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tracing-backend/tracing/exporters/disk/internal/block"
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/storage/vfs"
)

// readAll is the reference reader. It decodes a file sequentially and uses no indexes, filters,
// hints or caches.
func readAll(tb testing.TB, fsys vfs.FS, name string) []storedSpan {
	tb.Helper()
	data, err := vfs.ReadFile(fsys, name, 1<<30)
	if err != nil {
		tb.Fatal(err)
	}
	must := func(err error) {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
	}
	must(checkHeader(data[:headerSize]))
	t, err := readTrailer(data[len(data)-trailerSize:], int64(len(data)))
	must(err)
	d, err := readDirectory(data[t.offset:t.offset+t.length], t.offset)
	must(err)
	section := func(k kind) []byte {
		b := data[d[k].offset : d[k].offset+d[k].length]
		if checksum(b) != d[k].crc {
			tb.Fatalf("checksum of %s", k)
		}
		raw, err := unpack(b, &d[k])
		must(err)
		return raw
	}
	tables, err := readTables(section(kindTables))
	must(err)
	l, err := readLayout(tables, section(kindLayout))
	must(err)
	list, err := readBlockList(section(kindBlocks), d.begin())
	must(err)
	var pool block.Pool
	var spans []storedSpan
	for i, p := range list.blocks {
		b, err := pool.Open(l.block, data[p.offset:p.offset+int64(p.length)], name, i)
		must(err)
		for row := range b.Len() {
			s, err := spanOf(tables, b, row)
			must(err)
			spans = append(spans, s)
		}
		b.Close()
	}
	return spans
}

// rowReader reads rows of a block.
type rowReader interface {
	Head(row int, h *rows.Head) error
	Cells(dst []rows.Cell, row int) ([]rows.Cell, error)
}

// spanOf decodes a complete row of a block.
func spanOf(t *rows.Tables, b rowReader, row int) (storedSpan, error) {
	var h rows.Head
	var a rows.Assembler
	if err := b.Head(row, &h); err != nil {
		return storedSpan{}, err
	}
	cells, err := b.Cells(nil, row)
	if err != nil {
		return storedSpan{}, err
	}
	span, err := a.Span(t, &h, cells)
	if err != nil {
		return storedSpan{}, err
	}
	r := &t.Resources[h.Resource]
	if shape := &t.Shapes[h.Shape]; r.Service != shape.Service || r.Tenant != shape.Tenant {
		return storedSpan{}, fmt.Errorf("resource of %s %s, shape of %s %s", r.Tenant, r.Service, shape.Tenant, shape.Service)
	}
	return storedSpan{r.Tenant, h.TraceID, contentOf(&r.Resource, &t.Scopes[t.Shapes[h.Shape].Scope], span)}, nil
}

// keysOf returns the spans in an order that depends only on their content.
func keysOf(spans []storedSpan) []string {
	keys := make([]string, len(spans))
	for i, s := range spans {
		keys[i] = s.tenant + " " + s.content
	}
	slices.Sort(keys)
	return keys
}

func checkSame(tb testing.TB, what string, got, want []storedSpan) {
	tb.Helper()
	g, w := keysOf(got), keysOf(want)
	if slices.Equal(g, w) {
		return
	}
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			tb.Fatalf("%s: %d spans, want %d; differ at %d:\n%q\n%q", what, len(g), len(w), i, g[i], w[i])
		}
	}
	tb.Fatalf("%s: %d spans, want %d", what, len(g), len(w))
}
