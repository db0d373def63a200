package memtable

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// traces maps trace hashes to the last row of the trace. One goroutine adds rows; others look up
// concurrently without locks. Rows of different traces whose hashes share the upper half form one
// chain; readers compare the complete id.
type traces struct {
	slots atomic.Pointer[[]atomic.Uint64] // upper half of the hash << 32 | 1 + row; 0: free
	used  int
}

const firstTraceSlots = 1024

// link makes a row the last row of its hash, and sets before to 1 + the previous last row, or 0 if
// there was none.
func (t *traces) link(hash uint64, row uint32, before *uint32) {
	p := t.slots.Load()
	if p == nil || 4*t.used >= 3*len(*p) {
		p = t.grow(p)
	}
	slots := *p
	mask := uint64(len(slots) - 1)
	for at := hash >> 32; ; at++ {
		slot := &slots[at&mask]
		v := slot.Load()
		if v == 0 {
			t.used++
		} else if v>>32 != hash>>32 {
			continue
		}
		*before = uint32(v) // before the slot: a reader that finds the row reads it
		slot.Store(hash>>32<<32 | uint64(row) + 1)
		return
	}
}

// grow moves all entries to a table of twice the size. Readers of the old table still find the
// entries that it had.
func (t *traces) grow(old *[]atomic.Uint64) *[]atomic.Uint64 {
	size := firstTraceSlots
	if old != nil {
		size = 2 * len(*old)
	}
	slots := make([]atomic.Uint64, size)
	mask := uint64(size - 1)
	for i := 0; old != nil && i < len(*old); i++ {
		v := (*old)[i].Load()
		if v == 0 {
			continue
		}
		at := v >> 32
		for slots[at&mask].Load() != 0 {
			at++
		}
		slots[at&mask].Store(v)
	}
	t.slots.Store(&slots)
	return &slots
}

// last returns 1 + the last row of a hash, 0 if there is none.
func (t *traces) last(hash uint64) uint32 {
	p := t.slots.Load()
	if p == nil {
		return 0
	}
	mask := uint64(len(*p) - 1)
	for at := hash >> 32; ; at++ {
		v := (*p)[at&mask].Load()
		if v == 0 || v>>32 == hash>>32 {
			return uint32(v)
		}
	}
}

func (t *traces) bytes() int64 {
	if p := t.slots.Load(); p != nil {
		return int64(len(*p)) * slotBytes
	}
	return 0
}

// trace returns the hash of a trace id, given the hash of the tenant.
func (h *hasher) trace(tenant uint64, id *otlpdata.TraceID) uint64 {
	a, b := binary.LittleEndian.Uint64(id[:8]), binary.LittleEndian.Uint64(id[8:])
	hi, lo := bits.Mul64(a^tenant^h.secret[0], b^h.secret[1])
	return fold(h.secret[0], hi^lo)
}
