package memtable

import (
	"hash/maphash"
	"math/bits"
)

// index finds ids by the hash of what they stand for: a hash table with linear probing that leaves the comparison to the caller. The
// zero value is empty.
type index struct {
	slots []uint64 // upper half of the hash << 32 | 1 + id; 0: free
	used  int
}

const (
	firstSlots = 8
	slotBytes  = 8
)

// search goes over the ids that may be meant by a hash.
type search struct {
	slots []uint64
	tag   uint64
	at    uint64
}

func (x *index) search(hash uint64) search {
	return search{slots: x.slots, tag: hash >> 32, at: hash >> 32}
}

// next returns the next candidate, and false after the last one.
func (s *search) next() (uint32, bool) {
	mask := uint64(len(s.slots) - 1)
	for len(s.slots) > 0 {
		slot := s.slots[s.at&mask]
		if slot == 0 {
			break
		}
		s.at++
		if slot>>32 == s.tag {
			return uint32(slot) - 1, true
		}
	}
	return 0, false
}

// add adds an id, which must not be there yet.
func (x *index) add(hash uint64, id uint32) {
	if 4*x.used >= 3*len(x.slots) {
		x.grow()
	}
	place(x.slots, hash>>32<<32|uint64(id)+1)
	x.used++
}

func (x *index) grow() {
	old := x.slots
	x.slots = make([]uint64, max(firstSlots, 2*len(old)))
	for _, slot := range old {
		if slot != 0 {
			place(x.slots, slot)
		}
	}
}

func place(slots []uint64, slot uint64) {
	mask := uint64(len(slots) - 1)
	at := slot >> 32
	for slots[at&mask] != 0 {
		at++
	}
	slots[at&mask] = slot
}

// has reports whether an id was added under a hash, or under one with the same upper half.
func (x *index) has(hash uint64) bool {
	s := x.search(hash)
	_, ok := s.next()
	return ok
}

// remember adds a hash to an index that is used as a set, whose members are never asked for.
func (x *index) remember(hash uint64) {
	if !x.has(hash) {
		x.add(hash, 0)
	}
}

func (x *index) bytes() int64 { return int64(len(x.slots)) * slotBytes }

// hasher is the secret that keeps senders from choosing texts that collide.
type hasher struct {
	seed   maphash.Seed
	secret [2]uint64
}

func newHasher() hasher {
	h := hasher{seed: maphash.MakeSeed()}
	h.secret = [2]uint64{h.text("first"), h.text("second")}
	return h
}

func (h *hasher) text(s string) uint64 { return maphash.String(h.seed, s) }

func (h *hasher) bytes(b []byte) uint64 { return maphash.Bytes(h.seed, b) }

// fold adds x to a hash; the order counts. The constant is the golden ratio's, odd.
func fold(h, x uint64) uint64 {
	hi, lo := bits.Mul64(h^x, 0x9e3779b97f4a7c15)
	return hi ^ lo
}
