package memtable

import (
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// maxCached is the maximum number of cached attribute lookups of a snapshot.
const maxCached = 256

// attributeInfo is the result of looking up an attribute in all blocks.
type attributeInfo struct {
	word   bool // the text is a word of a column with the key
	inline bool // a column with the key has texts that are not words, or arrays
}

// HoldsIntegers returns false: the filters of memtables hold only texts.
func (s *snapshot) HoldsIntegers() bool { return false }

// HoldsElements returns true.
func (s *snapshot) HoldsElements() bool { return true }

// MayHold returns false if the text is neither a word of a column with the key nor in the filter of
// the block. A block that is still growing has no filter yet. If the text is a word, it is unknown
// which blocks have the word.
func (s *snapshot) MayHold(block int, key, text string) bool {
	a := s.lookUpAttribute(key, text)
	b := &s.hints[block]
	switch {
	case a.word:
		return true
	case !b.sealed:
		return a.inline || b.encoded
	}
	hash := &s.table.hash
	ofKey := hash.text(key)
	return b.incomplete || b.texts.has(hash.attribute(ofKey, text)) ||
		b.longArrays && b.texts.has(hash.attribute(ofKey, otlpdata.LongArray))
}

// lookUpAttribute looks up an attribute in the dictionaries. It caches the result, because queries
// look up the same attributes for each block.
func (s *snapshot) lookUpAttribute(key, text string) attributeInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	pair := [2]string{key, text}
	a, known := s.cached[pair]
	if known {
		return a
	}
	for id := range s.tables.Columns {
		c := &s.tables.Columns[id]
		if !holdsAttribute(c.Place) || c.Key != key {
			continue
		}
		switch c.Kind {
		case otlpdata.ValueString:
			a.inline = a.inline || s.inline[id]
			a.word = a.word || slices.Contains(s.tables.Words[id], text)
		case otlpdata.ValueArray:
			a.inline = true
		}
	}
	if len(s.cached) < maxCached {
		s.cached[pair] = a
	}
	return a
}

// Constant returns false: constants (cells that all rows of a shape have) are determined at flush.
func (s *snapshot) Constant(uint32, int) (rows.Cell, bool) { return rows.Cell{}, false }

// Words returns the words of a column, which are the texts in its dictionary. The dictionary is
// complete unless a row holds a text that is not a word.
func (s *snapshot) Words(column uint32) (words []string, complete bool) {
	if int(column) >= len(s.tables.Words) {
		return nil, false
	}
	return s.tables.Words[column], !s.inline[column]
}
