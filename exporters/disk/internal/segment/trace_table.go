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

// trace describes the rows of a trace of a tenant.
type trace struct {
	id           otlpdata.TraceID
	start        uint64 // earliest start
	tenant       uint32 // rank of the tenant's name
	rows         uint32
	bytes, cells uint32 // of all rows, saturating
	from         uint32 // location of its rows; the meaning depends on the user of the table
}

// traceTable holds all traces of a segment.
type traceTable struct {
	list    []trace
	tenants []uint32  // by resource: rank of the tenant's name
	seeds   [2]uint64 // random, so that senders cannot construct collisions
	slots   []uint32  // hash table: 1 + index of the trace, 0 is free
	last    uint32    // trace of the last row; adjacent rows often belong to one trace
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

// add adds a row with the given size and number of cells. It returns the index of its trace.
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

// find returns the index of a trace, which it adds if it is new.
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

// byStart returns the indexes of the traces in the order of the segment: by earliest start, tenant
// and trace id. No more traces can be added afterwards.
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

// arrange permutes list so that element order[i] moves to position i. It overwrites order.
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

// fragment is a run of rows of one trace in one block.
type fragment struct {
	block, first, rows uint32
	before             uint32 // 1 + preceding fragment of the trace; 0: none
}

// fragmentTable holds the locations of the rows of traces. trace.from is 1 + the last fragment.
type fragmentTable struct {
	traceTable
	fragments []fragment
	at        uint32 // trace of the last fragment
}

// reserve allocates memory for the given number of traces, because repeated growth would leave
// garbage of half the final size each time.
func (t *fragmentTable) reserve(traces int) {
	t.list, t.fragments = make([]trace, 0, traces), make([]fragment, 0, traces+traces/16)
	t.slots = make([]uint32, max(len(t.slots), 1<<bits.Len(uint(2*traces))))
}

// add adds the next row of a block.
func (t *fragmentTable) add(h *rows.Head, block uint32, row int) {
	i := t.traceTable.add(h, 0, 0)
	if n := len(t.fragments); n > 0 && t.at == i {
		if f := &t.fragments[n-1]; f.block == block && int(f.first+f.rows) == row {
			f.rows++
			return
		}
	}
	t.at = i
	of := &t.list[i]
	t.fragments = append(t.fragments, fragment{block, uint32(row), 1, of.from})
	of.from = uint32(len(t.fragments))
}

// sort sorts the traces into the order of the segment.
func (t *fragmentTable) sort() { arrange(t.list, t.byStart()) }

// appendOf appends the fragments of a trace in the order in which they were added.
func (t *fragmentTable) appendOf(dst []fragment, of *trace) []fragment {
	for at := of.from; at > 0; at = t.fragments[at-1].before {
		dst = append(dst, t.fragments[at-1])
	}
	slices.Reverse(dst)
	return dst
}
