package segment

import (
	"bytes"

	"github.com/cespare/xxhash/v2"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// duplicates finds rows that say the same as another row, however their texts are kept. It reuses its memory.
type duplicates struct {
	in       Input
	assemble rows.Assembler
	cells    []rows.Cell
	seen     map[uint64]uint32 // hash of a content -> first row that has it
	hash     xxhash.Digest
	a, b     content
}

func newDuplicates(in Input) *duplicates { return &duplicates{in: in, seen: map[uint64]uint32{}} }

// content is all that two rows of a tenant are compared by.
type content struct {
	head rows.Head
	span []byte // encoded
}

// drop removes rows of a trace that are there before, and returns how many. Rows that are the same have the same start and span id, which
// is why they lie together.
func (d *duplicates) drop(o *order, t *trace) int {
	list := o.rowsOf(t)
	kept := list[:0]
	for from := 0; from < len(list); {
		to := from + 1
		for to < len(list) && o.starts[list[to]] == o.starts[list[from]] && o.spans[list[to]] == o.spans[list[from]] {
			to++
		}
		if to == from+1 {
			kept = append(kept, list[from])
		} else {
			kept = d.distinct(kept, list[from:to])
		}
		from = to
	}
	dropped := len(list) - len(kept)
	t.rows -= uint32(dropped)
	return dropped
}

// distinct appends those of the candidates to dst that differ from the ones before. dst may lie before the candidates in the same array.
func (d *duplicates) distinct(dst, candidates []uint32) []uint32 {
	clear(d.seen)
	for _, row := range candidates {
		hash, readable := d.read(&d.a, row)
		first, found := d.seen[hash]
		switch {
		case !readable: // not for the reader of the segment either, but its bytes may tell something
			dst = append(dst, row)
		case !found:
			d.seen[hash] = row
			dst = append(dst, row)
		default:
			// If only the hash is the same the row stays, and further rows like it stay too.
			if _, readable = d.read(&d.b, first); !readable || !d.same() {
				dst = append(dst, row)
			}
		}
	}
	return dst
}

// read reads the content of a row and returns its hash.
func (d *duplicates) read(c *content, row uint32) (hash uint64, ok bool) {
	t := d.in.Tables
	var err error
	if d.cells, err = t.ReadRow(d.in.Row(int(row)), &c.head, d.cells[:0]); err != nil {
		return 0, false
	}
	span, err := d.assemble.Span(t, &c.head, d.cells)
	if err != nil {
		return 0, false
	}
	c.span = otlpdata.AppendSpan(c.span[:0], span)
	resource, scope := &t.Resources[c.head.Resource], &t.Scopes[t.Shapes[c.head.Shape].Scope]
	d.hash.Reset()
	d.hash.Write(c.span)
	d.hash.Write(resource.Raw)
	d.hash.WriteString(resource.SchemaURL)
	d.hash.Write(scope.Raw)
	d.hash.WriteString(scope.SchemaURL)
	return d.hash.Sum64(), true
}

func (d *duplicates) same() bool {
	if !bytes.Equal(d.a.span, d.b.span) {
		return false
	}
	t := d.in.Tables
	r, s := &t.Resources[d.a.head.Resource], &t.Resources[d.b.head.Resource]
	if d.a.head.Resource != d.b.head.Resource && (r.SchemaURL != s.SchemaURL || !bytes.Equal(r.Raw, s.Raw)) {
		return false
	}
	i, j := t.Shapes[d.a.head.Shape].Scope, t.Shapes[d.b.head.Shape].Scope
	return i == j || t.Scopes[i].SchemaURL == t.Scopes[j].SchemaURL && bytes.Equal(t.Scopes[i].Raw, t.Scopes[j].Raw)
}
