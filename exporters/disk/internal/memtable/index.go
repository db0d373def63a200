package memtable

import (
	"hash/maphash"
	"math/bits"
)

// index maps hashes to ids with linear probing. The caller compares the candidates. The zero value
// is empty.
type index struct {
	slots []uint64 // upper half of the hash << 32 | 1 + id; 0: free
	used  int
}

const (
	firstSlots = 8
	slotBytes  = 8
)

// candidates iterates over the ids with a hash.
type candidates struct {
	slots []uint64
	tag   uint64
	at    uint64
}

func (x *index) find(hash uint64) candidates {
	return candidates{slots: x.slots, tag: hash >> 32, at: hash >> 32}
}

// next returns the next candidate, and false after the last one.
func (c *candidates) next() (uint32, bool) {
	mask := uint64(len(c.slots) - 1)
	for len(c.slots) > 0 {
		slot := c.slots[c.at&mask]
		if slot == 0 {
			break
		}
		c.at++
		if slot>>32 == c.tag {
			return uint32(slot) - 1, true
		}
	}
	return 0, false
}

// add adds an id, which must not be in the index yet.
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

// has reports whether an id was added with the hash, or with another hash with the same upper half.
func (x *index) has(hash uint64) bool {
	s := x.find(hash)
	_, ok := s.next()
	return ok
}

// addToSet adds a hash to an index that is used as a set.
func (x *index) addToSet(hash uint64) {
	if !x.has(hash) {
		x.add(hash, 0)
	}
}

func (x *index) bytes() int64 { return int64(len(x.slots)) * slotBytes }

// hasher is keyed with a random secret, so that senders cannot choose texts that collide.
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

// fold combines a hash with x. The order matters. The constant is 2^64 divided by the golden ratio,
// which is odd.
func fold(h, x uint64) uint64 {
	hi, lo := bits.Mul64(h^x, 0x9e3779b97f4a7c15)
	return hi ^ lo
}
