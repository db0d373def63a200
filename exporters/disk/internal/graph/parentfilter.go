package graph

import (
	"hash/maphash"
	"math/bits"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// parentKey identifies a span that other spans have as their parent.
type parentKey struct {
	trace otlpdata.TraceID
	id    otlpdata.SpanID
}

// parentFilter is a set of parents with false positives but without false negatives: a Bloom filter
// that stores the bits of a key in one word.
type parentFilter struct {
	seed  maphash.Seed // random, so that clients cannot send ids that collide
	words []uint64
	shift int
}

// The number of bits of a key, and the size of a filter. With 16 bits for each expected key, less
// than one in a hundred other keys passes.
const (
	filterBits    = 4
	bitsPerParent = 16
	minFilter     = 1 << 10 // words
	maxFilter     = 1 << 22 // words, 32 MiB
)

// parentFilterWords returns the size of a filter for about the given number of keys.
func parentFilterWords(keys int) int {
	n := min(max(keys/(64/bitsPerParent), minFilter), maxFilter)
	return 1 << bits.Len(uint(n-1))
}

// parentFilterMemory returns the size in bytes of a filter for about the given number of keys.
func parentFilterMemory(keys int) int64 { return 8 * int64(parentFilterWords(keys)) }

// newParentFilter returns an empty filter for about the given number of keys.
func newParentFilter(keys int) *parentFilter {
	words := make([]uint64, parentFilterWords(keys))
	return &parentFilter{seed: maphash.MakeSeed(), words: words, shift: 65 - bits.Len(uint(len(words)))}
}

// place returns the word of a key and its bits in it. The upper bits of the hash select the word.
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
