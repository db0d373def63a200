package segment

import (
	"hash/maphash"
	"math/bits"
)

// ranks tells the places of texts in a dictionary that has them all. So it need not keep the texts: their hashes differ.
type ranks struct {
	words []uint32 // by word of the input: 1 + rank
	seed  maphash.Seed
	slots []rankSlot // hash table, a power of two: of the texts that may come as such
}

type rankSlot struct {
	hash uint64
	rank uint32 // 1 + rank; 0 is free
}

// newRanks returns the ranks of the texts of s, a column with these words. byIndex are the ranks of its indexes.
func newRanks(s *census, words []string, byIndex []uint32) ranks {
	r := ranks{words: make([]uint32, len(words))}
	for word, text := range words {
		// A text may have been counted as such though some rows have it as a word.
		if at, ok := s.index[text]; ok {
			r.words[word] = byIndex[at] + 1
		}
	}
	for !r.fill(s, byIndex) {
	}
	return r
}

// fill makes the hash table. It reports false if two texts have the same hash.
func (r *ranks) fill(s *census, byIndex []uint32) bool {
	r.seed = maphash.MakeSeed()
	r.slots = make([]rankSlot, 1<<bits.Len(uint(2*len(s.texts))))
	for at, text := range s.texts {
		slot := r.slot(maphash.String(r.seed, text))
		if slot.rank > 0 {
			return false
		}
		*slot = rankSlot{maphash.String(r.seed, text), byIndex[at] + 1}
	}
	return true
}

// known reports whether there is a dictionary.
func (r *ranks) known() bool { return r.slots != nil }

// slot returns where a hash stands, or would.
func (r *ranks) slot(hash uint64) *rankSlot {
	mask := uint64(len(r.slots) - 1)
	for i := hash; ; i++ {
		slot := &r.slots[i&mask]
		if slot.rank == 0 || slot.hash == hash {
			return slot
		}
	}
}

// read reads a cell and returns its rank.
func (r *ranks) read(c *cursor) (rank uint32, ok bool) {
	word := c.uvarint()
	switch {
	case word == 0:
		rank = r.slot(maphash.String(r.seed, c.text())).rank
	case word <= uint64(len(r.words)):
		rank = r.words[word-1]
	}
	return rank - 1, rank > 0
}
