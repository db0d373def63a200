package rows

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
)

// Sieve tells which rows may be duplicates of others: those whose ids and start came before. It also says so of other rows, of about one in
// 2^32, and of all when it is full. Not for concurrent use.
type Sieve struct {
	slots  []uint32 // 0: free; never all are used
	used   int
	secret [2]uint64
}

// NewSieve returns a sieve that has seen nothing and is full after n rows at the earliest. It takes four to eleven bytes for each of them.
func NewSieve(n int) *Sieve {
	const least = 16
	size := uint(max(n/3*4, n+1, least))
	return &Sieve{slots: make([]uint32, 1<<bits.Len(size-1)), secret: [2]uint64{rand.Uint64() | 1, rand.Uint64() | 1}}
}

// Hash hashes what Again compares. Nobody who sends spans can tell which of them have the same hash.
func (v *Sieve) Hash(h *Head) uint64 {
	le := binary.LittleEndian
	a, b := bits.Mul64(le.Uint64(h.TraceID[:8])^v.secret[0], le.Uint64(h.TraceID[8:])^v.secret[1])
	c, d := bits.Mul64(le.Uint64(h.SpanID[:])^v.secret[1]^a, h.Start^v.secret[0]^b)
	a, b = bits.Mul64(c^d^v.secret[0], v.secret[1])
	return a ^ b
}

// Again reports whether a hash came before, and remembers it.
func (v *Sieve) Again(hash uint64) bool {
	mark := uint32(hash>>32) | 1
	mask := uint64(len(v.slots) - 1)
	for at := hash; ; at++ {
		slot := &v.slots[at&mask]
		if *slot == mark {
			return true
		}
		if *slot != 0 {
			continue
		}
		if v.used+1 == len(v.slots) {
			return true
		}
		v.used++
		*slot = mark
		return false
	}
}

// Reset makes the sieve forget all hashes. Hash stays as it is.
func (v *Sieve) Reset() {
	clear(v.slots)
	v.used = 0
}
