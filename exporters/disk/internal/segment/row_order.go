package segment

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// rowKey is the sort key of rows of a trace: start, span id, arrival. Arrival makes the order
// unique.
type rowKey struct {
	start, span uint64
	row         uint32
	shape       uint32 // of the input
}

// spanKey returns a number that sorts like the bytes of a span id.
func spanKey(id otlpdata.SpanID) uint64 { return binary.BigEndian.Uint64(id[:]) }

func keyOf(h *rows.Head, row uint32) rowKey { return rowKey{h.Start, spanKey(h.SpanID), row, h.Shape} }

// mayDuplicate reports whether two rows may be duplicates. Such rows are adjacent in sorted order.
func (k *rowKey) mayDuplicate(b *rowKey) bool { return k.start == b.start && k.span == b.span }

func (k *rowKey) before(b *rowKey) bool {
	if k.start != b.start {
		return k.start < b.start
	}
	return k.span < b.span || k.span == b.span && k.row < b.row
}

// sortKeys sorts short lists by insertion, which is faster because they are mostly sorted.
func sortKeys(keys []rowKey) {
	const few = 64
	if len(keys) > few {
		slices.SortFunc(keys, func(a, b rowKey) int {
			if a.start != b.start {
				return cmp.Compare(a.start, b.start)
			}
			return cmp.Or(cmp.Compare(a.span, b.span), cmp.Compare(a.row, b.row))
		})
		return
	}
	for i := 1; i < len(keys); i++ {
		k := keys[i]
		at := i
		for ; at > 0 && k.before(&keys[at-1]); at-- {
			keys[at] = keys[at-1]
		}
		keys[at] = k
	}
}

// duplicates finds rows with the same content as another row, regardless of the encoding of their
// texts. It reuses its memory.
type duplicates struct {
	row      rowLookup
	assemble rows.Assembler
	cells    []rows.Cell
	seen     map[uint64]uint32 // by hash of a content: first row with it
	hash     xxhash.Digest
	a, b     content
	kept     []rowKey
}

// rowLookup decodes a row by its number: the head into h, the cells appended to dst. It returns the
// tables to which both refer.
type rowLookup interface {
	readRow(number uint32, h *rows.Head, dst []rows.Cell) (*rows.Tables, []rows.Cell, error)
}

func newDuplicates(row rowLookup) *duplicates {
	return &duplicates{row: row, seen: map[uint64]uint32{}}
}

// content holds everything that determines whether two rows of a tenant are duplicates.
type content struct {
	head     rows.Head
	span     []byte // encoded
	resource *rows.Resource
	scope    *otlpdata.Scope
}

// drop removes the keys of rows that duplicate an earlier row. keys are sorted and belong to one
// trace.
func (d *duplicates) drop(keys []rowKey) []rowKey {
	kept := 0
	for from := 0; from < len(keys); {
		to := from + 1
		for to < len(keys) && keys[to].mayDuplicate(&keys[from]) {
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

// distinct returns the candidates that differ from all earlier ones. The result is valid until the
// next call.
func (d *duplicates) distinct(candidates []rowKey) []rowKey {
	clear(d.seen)
	d.kept = d.kept[:0]
	for _, k := range candidates {
		hash, readable := d.read(&d.a, k.row)
		first, found := d.seen[hash]
		switch {
		case !readable: // keep the row, although readers cannot read it either
			d.kept = append(d.kept, k)
		case !found:
			d.seen[hash] = k.row
			d.kept = append(d.kept, k)
		default:
			// If only the hashes are equal, the row and further duplicates of it are kept.
			if _, readable = d.read(&d.b, first); !readable || !d.same() {
				d.kept = append(d.kept, k)
			}
		}
	}
	return d.kept
}

// read decodes the content of a row and returns its hash.
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
