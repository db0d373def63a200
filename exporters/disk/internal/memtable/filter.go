package memtable

import (
	"math/bits"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
)

// filter is a Bloom filter of the attributes of a block whose text is no word: 16 bits for each row of the block, and four of them, all in
// one 64-bit word, for each attribute.
type filter []uint64

const filterBitsPerRow = 16

// newFilter returns a filter for a block of so many rows.
func newFilter(rows int) filter {
	words := (rows*filterBitsPerRow + 63) / 64
	return make(filter, 1<<bits.Len(uint(words-1)))
}

func filterMask(hash uint64) uint64 {
	return 1<<(hash&63) | 1<<(hash>>6&63) | 1<<(hash>>12&63) | 1<<(hash>>18&63)
}

func (f filter) add(hash uint64) { f[hash>>32&uint64(len(f)-1)] |= filterMask(hash) }

// has reports whether an attribute may be in the filter.
func (f filter) has(hash uint64) bool {
	if len(f) == 0 {
		return false
	}
	mask := filterMask(hash)
	return f[hash>>32&uint64(len(f)-1)]&mask == mask
}

func (f filter) bytes() int64 { return int64(len(f)) * 8 }

// attribute hashes an attribute with a text, given the hash of its key.
func (h *hasher) attribute(key uint64, text string) uint64 { return fold(key, h.text(text)) }

func holdsAttribute(p rows.Place) bool { return p == rows.Attribute || p == rows.EventAttribute }

// remarks are what a block notes of a row for hints.
type remarks struct {
	texts  []uint64 // hashes of the attributes whose text is no word, also of those within encoded parts
	blobs  bool     // the row has attributes within encoded parts
	opaque bool     // not all of these are in texts
}

func (r *remarks) reset() { *r = remarks{texts: r.texts[:0]} }

// remark adds what a row has to what is known of its block of so many rows, and returns by how many bytes that grew.
func (b *blockInfo) remark(r *remarks, size int) (grown int64) {
	b.blobs, b.opaque = b.blobs || r.blobs, b.opaque || r.opaque
	if len(r.texts) > 0 && b.texts == nil {
		b.texts = newFilter(size)
		grown = b.texts.bytes()
	}
	for _, hash := range r.texts {
		b.texts.add(hash)
	}
	return grown
}
