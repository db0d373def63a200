package segment

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// trace is what the rows of a trace of a tenant have in common.
type trace struct {
	id           otlpdata.TraceID
	tenant       uint32 // rank of the tenant's name
	rows         uint32
	start        uint64 // the earliest
	bytes, cells uint32 // of all rows, at most the greatest number
	from         uint32 // where its rows begin in the order
	twins        bool   // some rows have the same start and span id
}

// order puts rows into the order of the segment: traces by their earliest start, then tenant and trace id, and the rows of a trace by
// start, span id and arrival.
type order struct {
	tenants []uint32 // by resource of the input: rank of the tenant's name
	traces  []trace
	seeds   [2]uint64 // random, so that nobody can send ids that collide
	slots   []uint32  // hash table of traces: 1 + index, 0 is free
	last    uint32    // number of the trace that was met last; neighbours often are of one

	// By row of the input. A row that is left out has no trace.
	traceOf []uint32
	starts  []uint64
	spans   []otlpdata.SpanID
	shapes  []uint32

	rows []uint32 // the order
	keys []rowKey // of the trace that is sorted
}

// rowKey is what rows of a trace are ordered by. Arrival decides at last, so that the order does not depend on how it was sorted.
type rowKey struct {
	start, span uint64
	row         uint32
}

const noTrace = math.MaxUint32

func newOrder(t *rows.Tables, n int) *order {
	names := make([]string, len(t.Resources))
	for i := range t.Resources {
		names[i] = t.Resources[i].Tenant
	}
	slices.Sort(names)
	names = slices.Compact(names)
	o := &order{tenants: make([]uint32, len(t.Resources)), seeds: [2]uint64{rand.Uint64(), rand.Uint64()}, slots: make([]uint32, 1024),
		traceOf: make([]uint32, n), starts: make([]uint64, n), spans: make([]otlpdata.SpanID, n), shapes: make([]uint32, n)}
	for i := range t.Resources {
		rank, _ := slices.BinarySearch(names, t.Resources[i].Tenant)
		o.tenants[i] = uint32(rank)
	}
	return o
}

// add notes a row.
func (o *order) add(e *entrant) {
	h := &e.head
	i := o.find(h.TraceID, o.tenants[h.Resource])
	t := &o.traces[i]
	if t.rows == 0 || h.Start < t.start {
		t.start = h.Start
	}
	t.rows++
	t.bytes = addUpTo(t.bytes, e.bytes)
	t.cells = addUpTo(t.cells, e.cells)
	o.traceOf[e.row], o.starts[e.row], o.spans[e.row], o.shapes[e.row] = i, h.Start, h.SpanID, h.Shape
}

func addUpTo(a uint32, b int) uint32 { return uint32(min(uint64(a)+uint64(b), math.MaxUint32)) }

// find returns the number of a trace, which is new if it was not there.
func (o *order) find(id otlpdata.TraceID, tenant uint32) uint32 {
	if int(o.last) < len(o.traces) && o.traces[o.last].id == id && o.traces[o.last].tenant == tenant {
		return o.last
	}
	if 2*len(o.traces) >= len(o.slots) {
		o.grow()
	}
	slot := o.slot(id, tenant)
	if *slot == 0 {
		o.traces = append(o.traces, trace{id: id, tenant: tenant})
		*slot = uint32(len(o.traces))
	}
	o.last = *slot - 1
	return o.last
}

func (o *order) slot(id otlpdata.TraceID, tenant uint32) *uint32 {
	mask := uint64(len(o.slots) - 1)
	high, low := bits.Mul64(binary.LittleEndian.Uint64(id[:])^o.seeds[0], binary.LittleEndian.Uint64(id[8:])^o.seeds[1]^uint64(tenant))
	for h := high ^ low; ; h++ {
		slot := &o.slots[h&mask]
		if *slot == 0 || o.traces[*slot-1].id == id && o.traces[*slot-1].tenant == tenant {
			return slot
		}
	}
}

func (o *order) grow() {
	o.slots = make([]uint32, 2*len(o.slots))
	for i := range o.traces {
		*o.slot(o.traces[i].id, o.traces[i].tenant) = uint32(i + 1)
	}
}

// sort brings the traces and the rows into their order.
func (o *order) sort() {
	o.slots = nil
	byStart := make([]uint32, len(o.traces))
	for i := range byStart {
		byStart[i] = uint32(i)
	}
	slices.SortFunc(byStart, func(i, j uint32) int { return o.traces[i].compare(&o.traces[j]) })
	from := uint32(0)
	for _, i := range byStart {
		o.traces[i].from, from = from, from+o.traces[i].rows
	}
	o.rows = make([]uint32, from)
	for row, i := range o.traceOf {
		if i == noTrace {
			continue
		}
		o.rows[o.traces[i].from] = uint32(row)
		o.traces[i].from++
	}
	o.traceOf = nil
	arrange(o.traces, byStart)
	for i := range o.traces {
		t := &o.traces[i]
		t.from -= t.rows
		o.sortRows(t)
	}
	o.keys = nil
}

// arrange brings a list into an order, which it uses up.
func arrange[T any](list []T, order []uint32) {
	for i := range order {
		first := list[i]
		at := uint32(i)
		for order[at] != uint32(i) {
			next := order[at]
			list[at], order[at] = list[next], at
			at = next
		}
		list[at], order[at] = first, at
	}
}

// sortRows sorts the rows of a trace. Their keys are copied first, since they are scattered over memory.
func (o *order) sortRows(t *trace) {
	list := o.rowsOf(t)
	o.keys = o.keys[:0]
	for _, row := range list {
		o.keys = append(o.keys, rowKey{o.starts[row], binary.BigEndian.Uint64(o.spans[row][:]), row})
	}
	sortKeys(o.keys)
	for i := range o.keys {
		k := &o.keys[i]
		list[i] = k.row
		t.twins = t.twins || i > 0 && k.start == o.keys[i-1].start && k.span == o.keys[i-1].span
	}
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

func (k *rowKey) before(b *rowKey) bool {
	if k.start != b.start {
		return k.start < b.start
	}
	return k.span < b.span || k.span == b.span && k.row < b.row
}

func (o *order) rowsOf(t *trace) []uint32 { return o.rows[t.from : t.from+t.rows] }

func (t *trace) compare(b *trace) int {
	if t.start != b.start {
		return cmp.Compare(t.start, b.start)
	}
	return cmp.Or(cmp.Compare(t.tenant, b.tenant), bytes.Compare(t.id[:], b.id[:]))
}
