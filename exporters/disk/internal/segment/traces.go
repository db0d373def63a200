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
	start        uint64 // the earliest
	tenant       uint32 // rank of the tenant's name
	rows         uint32
	bytes, cells uint32 // of all rows, at most the greatest number
	from         uint32 // where its rows are; what that means is up to who put it there
}

// traceTable has all traces of a segment.
type traceTable struct {
	list    []trace
	tenants []uint32  // by resource: rank of the tenant's name
	seeds   [2]uint64 // random, so that nobody can send ids that collide
	slots   []uint32  // hash table of traces: 1 + index, 0 is free
	last    uint32    // number of the trace that was met last; neighbours often are of one
}

func newTraceTable(t *rows.Tables) traceTable {
	names := make([]string, len(t.Resources))
	for i := range t.Resources {
		names[i] = t.Resources[i].Tenant
	}
	slices.Sort(names)
	names = slices.Compact(names)
	tenants := make([]uint32, len(t.Resources))
	for i := range t.Resources {
		rank, _ := slices.BinarySearch(names, t.Resources[i].Tenant)
		tenants[i] = uint32(rank)
	}
	return traceTable{tenants: tenants, seeds: [2]uint64{rand.Uint64(), rand.Uint64()}, slots: make([]uint32, 1024)}
}

// add notes a row of so many bytes and cells. It returns the number of its trace.
func (t *traceTable) add(h *rows.Head, bytes, cells int) uint32 {
	i := t.find(h.TraceID, t.tenants[h.Resource])
	of := &t.list[i]
	if of.rows == 0 || h.Start < of.start {
		of.start = h.Start
	}
	of.rows++
	of.bytes = addUpTo(of.bytes, bytes)
	of.cells = addUpTo(of.cells, cells)
	return i
}

func addUpTo(a uint32, b int) uint32 { return uint32(min(uint64(a)+uint64(b), math.MaxUint32)) }

// find returns the number of a trace, which is new if it was not there.
func (t *traceTable) find(id otlpdata.TraceID, tenant uint32) uint32 {
	if int(t.last) < len(t.list) && t.list[t.last].id == id && t.list[t.last].tenant == tenant {
		return t.last
	}
	if 2*len(t.list) >= len(t.slots) {
		t.grow()
	}
	slot := t.slot(id, tenant)
	if *slot == 0 {
		t.list = append(t.list, trace{id: id, tenant: tenant})
		*slot = uint32(len(t.list))
	}
	t.last = *slot - 1
	return t.last
}

func (t *traceTable) slot(id otlpdata.TraceID, tenant uint32) *uint32 {
	mask := uint64(len(t.slots) - 1)
	high, low := bits.Mul64(binary.LittleEndian.Uint64(id[:])^t.seeds[0], binary.LittleEndian.Uint64(id[8:])^t.seeds[1]^uint64(tenant))
	for h := high ^ low; ; h++ {
		slot := &t.slots[h&mask]
		if *slot == 0 || t.list[*slot-1].id == id && t.list[*slot-1].tenant == tenant {
			return slot
		}
	}
}

func (t *traceTable) grow() {
	t.slots = make([]uint32, 2*len(t.slots))
	for i := range t.list {
		*t.slot(t.list[i].id, t.list[i].tenant) = uint32(i + 1)
	}
}

// byStart returns the numbers of the traces in the order of the segment: by their earliest start, then tenant and trace id. No more are
// added.
func (t *traceTable) byStart() []uint32 {
	t.slots = nil
	order := make([]uint32, len(t.list))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(i, j uint32) int { return t.list[i].compare(&t.list[j]) })
	return order
}

func (t *trace) compare(b *trace) int {
	if t.start != b.start {
		return cmp.Compare(t.start, b.start)
	}
	return cmp.Or(cmp.Compare(t.tenant, b.tenant), bytes.Compare(t.id[:], b.id[:]))
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
