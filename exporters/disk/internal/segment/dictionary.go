package segment

import (
	"hash/maphash"
	"math/bits"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
)

// textCounter counts the distinct texts of the varying cells of a string column, until there are
// too many.
type textCounter struct {
	stopped bool     // not a string column, or too many texts
	byWord  []uint32 // by word of the input: 1 + index of the text; 0: not counted
	index   map[string]uint32
	texts   []string
	counts  []uint32
	total   int
}

// countKnown counts the next cell if it is a word that was counted before. Otherwise it does not
// move the cursor.
func (s *textCounter) countKnown(c *cursor) bool {
	from := c.at
	word := c.uvarint()
	if word-1 < uint64(len(s.byWord)) && s.byWord[word-1] > 0 {
		s.counts[s.byWord[word-1]-1]++
		s.total++
		return true
	}
	c.at = from
	return false
}

// find returns the index of a text, or -1. It may miss a text that was counted in the other form:
// as a word (by its number in a dictionary of the input) instead of as a text, or the reverse.
func (s *textCounter) find(c rows.Cell) int {
	if c.Word > 0 {
		if int(c.Word) <= len(s.byWord) {
			return int(s.byWord[c.Word-1]) - 1
		}
		return -1
	}
	if at, ok := s.index[c.Data]; ok {
		return int(at)
	}
	return -1
}

// dictionary returns the texts of a column by descending frequency, and the rank of each index. ok
// is false if a dictionary does not pay off.
func (s *textCounter) dictionary() (texts []string, ranks []uint32, ok bool) {
	if s.stopped || s.total < minRepeats*len(s.texts) || len(s.texts) == 0 {
		return nil, nil, false
	}
	order := ranked(s.counts)
	ranks = make([]uint32, len(order))
	for rank, at := range order {
		texts = append(texts, s.texts[at])
		ranks[at] = uint32(rank)
	}
	return texts, ranks, true
}

// dictionaryIndex maps texts to their ranks in a dictionary. All texts that are looked up must be
// in the dictionary; therefore it stores only hashes, which are distinct.
type dictionaryIndex struct {
	words []uint32 // by word of the input: 1 + rank
	seed  maphash.Seed
	slots []dictionarySlot // hash table of the texts; length is a power of two
}

type dictionarySlot struct {
	hash uint64
	rank uint32 // 1 + rank; 0 is free
}

// newDictionaryIndex returns the index for the texts of s. words is the dictionary of the column in
// the input, and ranks is the rank of each index of s.
func newDictionaryIndex(s *textCounter, words []string, ranks []uint32) dictionaryIndex {
	d := dictionaryIndex{words: make([]uint32, len(words))}
	for word, text := range words {
		// A text may have been counted as a text although some rows have it as a word.
		if at, ok := s.index[text]; ok {
			d.words[word] = ranks[at] + 1
		}
	}
	for !d.fill(s, ranks) {
	}
	return d
}

// fill fills the hash table. It returns false if two texts have the same hash.
func (d *dictionaryIndex) fill(s *textCounter, ranks []uint32) bool {
	d.seed = maphash.MakeSeed()
	d.slots = make([]dictionarySlot, 1<<bits.Len(uint(2*len(s.texts))))
	for at, text := range s.texts {
		slot := d.slot(maphash.String(d.seed, text))
		if slot.rank > 0 {
			return false
		}
		*slot = dictionarySlot{maphash.String(d.seed, text), ranks[at] + 1}
	}
	return true
}

// exists reports whether the column has a dictionary.
func (d *dictionaryIndex) exists() bool { return d.slots != nil }

// slot returns the slot of a hash, which may be free.
func (d *dictionaryIndex) slot(hash uint64) *dictionarySlot {
	mask := uint64(len(d.slots) - 1)
	for i := hash; ; i++ {
		slot := &d.slots[i&mask]
		if slot.rank == 0 || slot.hash == hash {
			return slot
		}
	}
}

// read decodes a cell and returns its rank.
func (d *dictionaryIndex) read(c *cursor) (rank uint32, ok bool) {
	word := c.uvarint()
	switch {
	case word == 0:
		rank = d.slot(maphash.String(d.seed, c.text())).rank
	case word <= uint64(len(d.words)):
		rank = d.words[word-1]
	}
	return rank - 1, rank > 0
}
