package segment

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// order finds the rows of each trace, and brings the traces into the order of the segment.
type order struct {
	traceTable
	traceOf []uint32 // by row of the input; a row that is left out has no trace
	rows    []uint32 // those of a trace follow each other, in the order of arrival
}

const noTrace = math.MaxUint32

func newOrder(t *rows.Tables, n int) *order {
	return &order{traceTable: newTraceTable(t), traceOf: make([]uint32, n)}
}

// sort brings the traces into their order, and the rows together.
func (o *order) sort() {
	byStart := o.byStart()
	from := uint32(0)
	for _, i := range byStart {
		o.list[i].from, from = from, from+o.list[i].rows
	}
	o.rows = make([]uint32, from)
	for row, i := range o.traceOf {
		if i == noTrace {
			continue
		}
		o.rows[o.list[i].from] = uint32(row)
		o.list[i].from++
	}
	o.traceOf = nil
	arrange(o.list, byStart)
	for i := range o.list {
		o.list[i].from -= o.list[i].rows
	}
}

func (o *order) rowsOf(t *trace) []uint32 { return o.rows[t.from : t.from+t.rows] }

// rowKey is what rows of a trace are ordered by: start, span id, arrival. The last decides between equals, so that the order does not
// depend on how it was sorted.
type rowKey struct {
	start, span uint64
	row         uint32
	shape       uint32 // of the input
}

// spanKey returns the number whose order is that of the bytes of a span id.
func spanKey(id otlpdata.SpanID) uint64 { return binary.BigEndian.Uint64(id[:]) }

func keyOf(h *rows.Head, row uint32) rowKey { return rowKey{h.Start, spanKey(h.SpanID), row, h.Shape} }

// twins reports whether two rows may be duplicates of each other. If they are, they lie together.
func (k *rowKey) twins(b *rowKey) bool { return k.start == b.start && k.span == b.span }

func (k *rowKey) before(b *rowKey) bool {
	if k.start != b.start {
		return k.start < b.start
	}
	return k.span < b.span || k.span == b.span && k.row < b.row
}

// sortKeys sorts few keys by insertion, which is faster where most are in order.
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
