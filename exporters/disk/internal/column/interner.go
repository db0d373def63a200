package column

import (
	"cmp"
	"hash/maphash"
	"math"
	"math/bits"
	"slices"
	"unsafe"
)

// interner numbers distinct strings in the order of their first appearance. Its hash is randomly
// seeded, but the results do not depend on it.
type interner struct {
	seed   maphash.Seed
	slots  []slot // a power of two, at most half full
	values []string
	counts []uint32
}

type slot struct {
	hash uint32
	next uint32 // 1 + index into values; 0 is free
}

// reset empties the interner and prepares it for n distinct strings.
func (t *interner) reset(n int) {
	t.forget()
	size := 1 << bits.Len(uint(2*n))
	if cap(t.slots) < size {
		t.slots = make([]slot, size)
	}
	t.slots = t.slots[:size]
	clear(t.slots)
}

// forget removes all references to strings.
func (t *interner) forget() {
	clear(t.values)
	t.values, t.counts = t.values[:0], t.counts[:0]
}

// add counts s and returns its number. It retains s.
func (t *interner) add(s string) uint32 {
	at, found := t.find(s)
	if !found {
		t.values, t.counts = append(t.values, s), append(t.counts, 0)
	}
	t.counts[at]++
	return at
}

// addCopy is like add for bytes that will be overwritten.
func (t *interner) addCopy(b []byte) uint32 {
	at, found := t.find(unsafe.String(unsafe.SliceData(b), len(b)))
	if !found {
		t.values, t.counts = append(t.values, string(b)), append(t.counts, 0)
	}
	t.counts[at]++
	return at
}

// find returns the number of s. If s is new, it reserves the next number; the caller must then
// append s to values.
func (t *interner) find(s string) (number uint32, found bool) {
	full := maphash.String(t.seed, s)
	hash, mask := uint32(full>>32), uint64(len(t.slots)-1)
	for i := full; ; i++ {
		at := &t.slots[i&mask]
		if at.next == 0 {
			*at = slot{hash, uint32(len(t.values)) + 1}
			return uint32(len(t.values)), false
		}
		if at.hash == hash && t.values[at.next-1] == s {
			return at.next - 1, true
		}
	}
}

// entropy returns the entropy in bits of n codes with the given counts of occurrences.
func entropy(counts []uint32, n int) float64 {
	sum := float64(n) * math.Log2(float64(n))
	for _, c := range counts {
		sum -= float64(c) * math.Log2(float64(c))
	}
	return sum
}

// rank sorts the values by descending frequency and updates codes accordingly.
func (t *interner) rank(codes []uint32) {
	order := make([]uint32, len(t.values))
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortStableFunc(order, func(a, b uint32) int { return cmp.Compare(t.counts[b], t.counts[a]) })
	rank, values := make([]uint32, len(order)), make([]string, len(order))
	for r, i := range order {
		rank[i], values[r] = uint32(r), t.values[i]
	}
	copy(t.values, values)
	for i, c := range codes {
		codes[i] = rank[c]
	}
}

// total returns the total length of all strings in bytes.
func total(v []string) int {
	n := 0
	for _, s := range v {
		n += len(s)
	}
	return n
}

// same reports whether all strings are equal.
func same(v []string) bool {
	for _, s := range v {
		if s != v[0] {
			return false
		}
	}
	return true
}

// cut splits text into strings of the given lengths.
func cut(text string, lengths []uint64, dst []string) {
	for i, n := range lengths {
		dst[i], text = text[:n], text[n:]
	}
}
