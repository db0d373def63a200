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
}

// order puts rows into the order of the segment: traces by their earliest start, then tenant and trace id, and the rows of a trace by
// start, span id and arrival.
type order struct {
	tenants []uint32 // by resource of the input: rank of the tenant's name
	traces  []trace
	seeds   [2]uint64 // random, so that nobody can send ids that collide
	slots   []uint32  // hash table of traces: 1 + index, 0 is free

	// By row of the input. A row that is left out has no trace.
	traceOf []uint32
	starts  []uint64
	spans   []otlpdata.SpanID
	shapes  []uint32

	rows []uint32 // the order
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
		traceOf: make([]uint32, 0, n), starts: make([]uint64, 0, n), spans: make([]otlpdata.SpanID, 0, n), shapes: make([]uint32, 0, n)}
	for i := range t.Resources {
		rank, _ := slices.BinarySearch(names, t.Resources[i].Tenant)
		o.tenants[i] = uint32(rank)
	}
	return o
}

// skip notes that the next row is left out.
func (o *order) skip() {
	o.traceOf, o.starts, o.spans = append(o.traceOf, noTrace), append(o.starts, 0), append(o.spans, otlpdata.SpanID{})
	o.shapes = append(o.shapes, 0)
}

// add notes the next row: its head and how long it is.
func (o *order) add(h *rows.Head, bytes, cells int) {
	i := o.find(h.TraceID, o.tenants[h.Resource])
	t := &o.traces[i]
	if t.rows == 0 || h.Start < t.start {
		t.start = h.Start
	}
	t.rows++
	t.bytes = addUpTo(t.bytes, bytes)
	t.cells = addUpTo(t.cells, cells)
	o.traceOf, o.starts, o.spans = append(o.traceOf, i), append(o.starts, h.Start), append(o.spans, h.SpanID)
	o.shapes = append(o.shapes, h.Shape)
}

func addUpTo(a uint32, b int) uint32 { return uint32(min(uint64(a)+uint64(b), math.MaxUint32)) }

// find returns the number of a trace, which is new if it was not there.
func (o *order) find(id otlpdata.TraceID, tenant uint32) uint32 {
	if 2*len(o.traces) >= len(o.slots) {
		o.grow()
	}
	slot := o.slot(id, tenant)
	if *slot == 0 {
		o.traces = append(o.traces, trace{id: id, tenant: tenant})
		*slot = uint32(len(o.traces))
	}
	return *slot - 1
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
	slices.SortFunc(o.traces, func(a, b trace) int { return a.compare(&b) })
	for i := range o.traces {
		t := &o.traces[i]
		t.from -= t.rows
		slices.SortFunc(o.rowsOf(t), o.compareRows)
	}
}

func (o *order) rowsOf(t *trace) []uint32 { return o.rows[t.from : t.from+t.rows] }

func (t *trace) compare(b *trace) int {
	return cmp.Or(cmp.Compare(t.start, b.start), cmp.Compare(t.tenant, b.tenant), bytes.Compare(t.id[:], b.id[:]))
}

// compareRows compares rows of a trace. Arrival decides at last, so that the order does not depend on how it was sorted.
func (o *order) compareRows(a, b uint32) int {
	if c := cmp.Compare(o.starts[a], o.starts[b]); c != 0 {
		return c
	}
	if c := bytes.Compare(o.spans[a][:], o.spans[b][:]); c != 0 {
		return c
	}
	return cmp.Compare(a, b)
}
