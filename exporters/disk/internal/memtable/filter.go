package memtable

import (
	"math/bits"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// filter is a Bloom filter of the attributes of a block whose text is not a word, and of arrays. It
// has 16 bits per row of the block. Each attribute sets four bits of one 64-bit word.
type filter []uint64

const filterBitsPerRow = 16

// newFilter returns a filter for a block with the given number of rows.
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

// attribute returns the hash of an attribute with a text, given the hash of its key.
func (h *hasher) attribute(key uint64, text string) uint64 { return fold(key, h.text(text)) }

func holdsAttribute(p rows.Place) bool { return p == rows.Attribute || p == rows.EventAttribute }

// rowHints are the properties of a row from which the hints of its block are built.
type rowHints struct {
	texts      []uint64 // hashes of attributes: texts that are not words, arrays, and all within encoded parts
	encoded    bool     // the row has attributes within encoded parts
	incomplete bool     // texts does not include all of these
	longArrays bool     // texts has otlpdata.LongArray
}

// addArray adds an array, given the hash of its key.
func (r *rowHints) addArray(h *hasher, key uint64, v otlpdata.Value) {
	r.texts = append(r.texts, h.attribute(key, v.AsString()))
	for text := range v.IndexedTexts() {
		r.longArrays = r.longArrays || text == otlpdata.LongArray
		r.texts = append(r.texts, h.attribute(key, text))
	}
}

func (r *rowHints) reset() { *r = rowHints{texts: r.texts[:0]} }

// addHints adds the hints of a row to its block with size rows. It returns the number of bytes
// allocated.
func (b *blockInfo) addHints(r *rowHints, size int) (grown int64) {
	b.encoded, b.incomplete, b.longArrays = b.encoded || r.encoded, b.incomplete || r.incomplete, b.longArrays || r.longArrays
	if len(r.texts) > 0 && b.texts == nil {
		b.texts = newFilter(size)
		grown = b.texts.bytes()
	}
	for _, hash := range r.texts {
		b.texts.add(hash)
	}
	return grown
}
