package stats

import (
	"hash/maphash"
	"math/bits"
)

// nameIndex finds names by their hashes. It stores only the ids of names, in at most eleven
// bytes per name, because the caller has the names: a map would store each of them again.
type nameIndex struct {
	slots []uint32 // 1 + id; 0: free. The length is a power of two; at most three quarters are used.
	used  int
}

// nameSeed is random, so that senders cannot construct collisions.
var nameSeed = maphash.MakeSeed()

// reserve allocates memory for n names. The index must be empty.
func (x *nameIndex) reserve(n int) {
	if n > 0 {
		x.slots = make([]uint32, max(minSlots, 1<<bits.Len(uint(n+n/3))))
	}
}

// find returns the id of a name with a hash for which is returns true.
func (x *nameIndex) find(hash uint64, is func(id uint32) bool) (id uint32, ok bool) {
	if len(x.slots) == 0 {
		return 0, false
	}
	mask := uint64(len(x.slots) - 1)
	for i := hash & mask; x.slots[i] != 0; i = (i + 1) & mask {
		if id := x.slots[i] - 1; is(id) {
			return id, true
		}
	}
	return 0, false
}

// add adds the id of a name that find does not find. hashOf returns the hash of a name.
func (x *nameIndex) add(id uint32, hashOf func(id uint32) uint64) {
	if x.used >= len(x.slots)/4*3 {
		old := x.slots
		x.slots = make([]uint32, max(minSlots, 2*len(old)))
		for _, slot := range old {
			if slot != 0 {
				x.put(slot, hashOf(slot-1))
			}
		}
	}
	x.used++
	x.put(id+1, hashOf(id))
}

func (x *nameIndex) put(slot uint32, hash uint64) {
	mask := uint64(len(x.slots) - 1)
	i := hash & mask
	for x.slots[i] != 0 {
		i = (i + 1) & mask
	}
	x.slots[i] = slot
}
