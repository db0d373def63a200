package graph

import (
	"hash/maphash"
	"math/bits"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// parentKey names a span that others may have as their parent.
type parentKey struct {
	trace otlpdata.TraceID
	id    otlpdata.SpanID
}

// parentFilter is a set of parents that may report one that is not in it, never the reverse: a Bloom filter each of whose keys is bits of
// one word.
type parentFilter struct {
	seed  maphash.Seed // random, so that nobody can send ids that collide
	words []uint64
	shift int
}

// Bits that a key sets, and the size of a filter: 16 bits for each key that is expected let through one in some hundred others.
const (
	filterBits    = 4
	bitsPerParent = 16
	minFilter     = 1 << 10 // words
	maxFilter     = 1 << 22 // words, 32 MiB
)

// newParentFilter returns an empty filter for about so many keys.
func newParentFilter(keys int) *parentFilter {
	n := min(max(keys/(64/bitsPerParent), minFilter), maxFilter)
	log := bits.Len(uint(n - 1))
	return &parentFilter{seed: maphash.MakeSeed(), words: make([]uint64, 1<<log), shift: 64 - log}
}

// place returns the word of a key and its bits there. The upper bits of the hash choose the word, the lower ones the bits.
func (f *parentFilter) place(k parentKey) (word *uint64, mask uint64) {
	h := maphash.Comparable(f.seed, k)
	for i := range filterBits {
		mask |= 1 << (h >> (6 * i) & 63)
	}
	return &f.words[h>>f.shift], mask
}

func (f *parentFilter) add(k parentKey) {
	word, mask := f.place(k)
	*word |= mask
}

func (f *parentFilter) mayHave(k parentKey) bool {
	word, mask := f.place(k)
	return *word&mask == mask
}
