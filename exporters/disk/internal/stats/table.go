package stats

import (
	"cmp"
	"math/bits"
	"slices"
)

// table maps numbers to values with open addressing in one array, so that a look-up of an existing
// key accesses memory only once. It holds at most maxCells entries.
type table[V any] struct {
	slots []slot[V] // length is a power of two; at most three quarters are used
	used  int
	seed  uint64 // random, so that senders of spans cannot construct collisions
}

// slot is an entry. Its key is 1 + the key; 0 means free.
type slot[V any] struct {
	key   uint64
	value V
}

const (
	minSlots = 1 << 8
	maxSlots = 1 << 21
	// maxCells is the maximum number of entries of a table. It bounds the memory of a [Collector]
	// even if the times of spans are spread arbitrarily: 160 MiB for series and 176 MiB for edges.
	maxCells = maxSlots / 4 * 3
)

// at returns the value of a key, which is zero if the key is new, or nil if the table is full. The
// pointer is valid until the next call. The key must be less than 1<<64 - 1.
func (t *table[V]) at(key uint64) *V {
	mask := uint64(len(t.slots) - 1)
	if len(t.slots) > 0 {
		for i := t.hash(key) & mask; ; i = (i + 1) & mask {
			s := &t.slots[i]
			if s.key == key+1 {
				return &s.value
			}
			if s.key == 0 {
				break
			}
		}
	}
	return t.insert(key)
}

// insert adds a new key.
func (t *table[V]) insert(key uint64) *V {
	if t.used >= maxCells {
		return nil
	}
	if t.used >= len(t.slots)/4*3 {
		t.grow()
	}
	t.used++
	s := t.free(key)
	s.key = key + 1
	return &s.value
}

// free returns the free slot for a new key.
func (t *table[V]) free(key uint64) *slot[V] {
	mask := uint64(len(t.slots) - 1)
	i := t.hash(key) & mask
	for t.slots[i].key != 0 {
		i = (i + 1) & mask
	}
	return &t.slots[i]
}

func (t *table[V]) grow() {
	old := t.slots
	t.slots = make([]slot[V], max(minSlots, 2*len(old)))
	for i := range old {
		if old[i].key != 0 {
			*t.free(old[i].key - 1) = old[i]
		}
	}
}

func (t *table[V]) hash(key uint64) uint64 {
	hi, lo := bits.Mul64(key^t.seed, 0x9e3779b97f4a7c15)
	return hi ^ lo
}

// entry locates a value.
type entry struct {
	key  uint64
	slot uint32
}

// sorted returns all entries, sorted by the keys that change returns.
func (t *table[V]) sorted(change func(key uint64) uint64) []entry {
	out := make([]entry, 0, t.used)
	for i := range t.slots {
		if k := t.slots[i].key; k != 0 {
			out = append(out, entry{change(k - 1), uint32(i)})
		}
	}
	slices.SortFunc(out, func(a, b entry) int { return cmp.Compare(a.key, b.key) })
	return out
}
