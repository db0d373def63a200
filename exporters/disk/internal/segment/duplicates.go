package segment

import (
	"bytes"

	"github.com/cespare/xxhash/v2"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// duplicates finds rows that say the same as another row, however their texts are kept. It reuses its memory.
type duplicates struct {
	row      rowSource
	assemble rows.Assembler
	cells    []rows.Cell
	seen     map[uint64]uint32 // hash of a content -> first row that has it
	hash     xxhash.Digest
	a, b     content
	kept     []rowKey
}

// rowSource reads a row by its number: the head into h, the cells behind dst. It returns the tables that both refer to.
type rowSource interface {
	readRow(number uint32, h *rows.Head, dst []rows.Cell) (*rows.Tables, []rows.Cell, error)
}

func newDuplicates(row rowSource) *duplicates {
	return &duplicates{row: row, seen: map[uint64]uint32{}}
}

// content is all that two rows of a tenant are compared by.
type content struct {
	head     rows.Head
	span     []byte // encoded
	resource *rows.Resource
	scope    *otlpdata.Scope
}

// drop removes the keys of rows that are there before from those of a trace, which are sorted.
func (d *duplicates) drop(keys []rowKey) []rowKey {
	kept := 0
	for from := 0; from < len(keys); {
		to := from + 1
		for to < len(keys) && keys[to].twins(&keys[from]) {
			to++
		}
		if to == from+1 {
			keys[kept] = keys[from]
			kept++
		} else {
			kept += copy(keys[kept:], d.distinct(keys[from:to]))
		}
		from = to
	}
	return keys[:kept]
}

// distinct returns those of the candidates that differ from the ones before. The result is valid until the next call.
func (d *duplicates) distinct(candidates []rowKey) []rowKey {
	clear(d.seen)
	d.kept = d.kept[:0]
	for _, k := range candidates {
		hash, readable := d.read(&d.a, k.row)
		first, found := d.seen[hash]
		switch {
		case !readable: // not for the reader of the segment either, but its bytes may tell something
			d.kept = append(d.kept, k)
		case !found:
			d.seen[hash] = k.row
			d.kept = append(d.kept, k)
		default:
			// If only the hash is the same the row stays, and further rows like it stay too.
			if _, readable = d.read(&d.b, first); !readable || !d.same() {
				d.kept = append(d.kept, k)
			}
		}
	}
	return d.kept
}

// read reads the content of a row and returns its hash.
func (d *duplicates) read(c *content, row uint32) (hash uint64, ok bool) {
	t, cells, err := d.row.readRow(row, &c.head, d.cells[:0])
	if d.cells = cells; err != nil {
		return 0, false
	}
	span, err := d.assemble.Span(t, &c.head, d.cells)
	if err != nil {
		return 0, false
	}
	c.span = otlpdata.AppendSpan(c.span[:0], span)
	c.resource, c.scope = &t.Resources[c.head.Resource], &t.Scopes[t.Shapes[c.head.Shape].Scope]
	d.hash.Reset()
	d.hash.Write(c.span)
	d.hash.Write(c.resource.Raw)
	d.hash.WriteString(c.resource.SchemaURL)
	d.hash.Write(c.scope.Raw)
	d.hash.WriteString(c.scope.SchemaURL)
	return d.hash.Sum64(), true
}

func (d *duplicates) same() bool {
	a, b := &d.a, &d.b
	return bytes.Equal(a.span, b.span) &&
		(a.resource == b.resource || a.resource.SchemaURL == b.resource.SchemaURL && bytes.Equal(a.resource.Raw, b.resource.Raw)) &&
		(a.scope == b.scope || a.scope.SchemaURL == b.scope.SchemaURL && bytes.Equal(a.scope.Raw, b.scope.Raw))
}
