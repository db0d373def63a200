package rows

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
)

// DuplicateFilter detects rows that may be duplicates of earlier rows because they have the same
// ids and start. About one in 2^32 other rows is reported as well. When the filter is full, every
// row is reported. It is not safe for concurrent use.
type DuplicateFilter struct {
	slots  []uint32 // 0: free; at least one slot is always free
	used   int
	secret [2]uint64
}

// NewDuplicateFilter returns an empty filter for at least n rows. It takes 4 to 11 bytes per
// row.
func NewDuplicateFilter(n int) *DuplicateFilter {
	const minSlots = 16
	size := uint(max(n/3*4, n+1, minSlots))
	return &DuplicateFilter{slots: make([]uint32, 1<<bits.Len(size-1)), secret: [2]uint64{rand.Uint64() | 1, rand.Uint64() | 1}}
}

// Hash returns the hash of a row for Seen. It is keyed with a random secret, so that senders of
// spans cannot construct collisions.
func (f *DuplicateFilter) Hash(h *Head) uint64 {
	le := binary.LittleEndian
	a, b := bits.Mul64(le.Uint64(h.TraceID[:8])^f.secret[0], le.Uint64(h.TraceID[8:])^f.secret[1])
	c, d := bits.Mul64(le.Uint64(h.SpanID[:])^f.secret[1]^a, h.Start^f.secret[0]^b)
	a, b = bits.Mul64(c^d^f.secret[0], f.secret[1])
	return a ^ b
}

// Seen adds a hash to the filter and reports whether it had been added before.
func (f *DuplicateFilter) Seen(hash uint64) bool {
	tag := uint32(hash>>32) | 1
	mask := uint64(len(f.slots) - 1)
	for at := hash; ; at++ {
		slot := &f.slots[at&mask]
		if *slot == tag {
			return true
		}
		if *slot != 0 {
			continue
		}
		if f.used+1 == len(f.slots) {
			return true
		}
		f.used++
		*slot = tag
		return false
	}
}

// Reset removes all hashes. Hash returns the same values as before.
func (f *DuplicateFilter) Reset() {
	clear(f.slots)
	f.used = 0
}
