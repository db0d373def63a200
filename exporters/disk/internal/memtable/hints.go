package memtable

import (
	"slices"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// maxKnown is how many answers about texts a snapshot remembers.
const maxKnown = 256

// answer is what is known of an attribute in all blocks.
type answer struct {
	word   bool // the text is a word of one of the key's columns
	inline bool // one of these columns has texts that are no words
}

// HoldsIntegers says no: filters of memtables have texts only.
func (s *snapshot) HoldsIntegers() bool { return false }

// MayHold says no where the text is no word of the key and not in the filter of the block. Of a block that still grows there is no filter
// yet. Words are not known by block.
func (s *snapshot) MayHold(block int, key, text string) bool {
	a := s.ask(key, text)
	b := &s.notes[block]
	switch {
	case a.word:
		return true
	case !b.sealed:
		return a.inline || b.blobs
	}
	hash := &s.table.hash
	return b.opaque || b.texts.has(hash.attribute(hash.text(key), text))
}

// ask looks an attribute up in the dictionaries. Queries ask the same for each block.
func (s *snapshot) ask(key, text string) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	question := [2]string{key, text}
	a, known := s.known[question]
	if known {
		return a
	}
	for id := range s.tables.Columns {
		c := &s.tables.Columns[id]
		if holdsAttribute(c.Place) && c.Kind == otlpdata.ValueString && c.Key == key {
			a.inline = a.inline || s.inline[id]
			a.word = a.word || slices.Contains(s.tables.Words[id], text)
		}
	}
	if len(s.known) < maxKnown {
		s.known[question] = a
	}
	return a
}

// Constant knows nothing: values are not compared before the flush.
func (s *snapshot) Constant(uint32, int) (rows.Cell, bool) { return rows.Cell{}, false }

// Words returns the dictionary, which has all texts unless one stands in a row.
func (s *snapshot) Words(column uint32) (words []string, complete bool) {
	if int(column) >= len(s.tables.Words) {
		return nil, false
	}
	return s.tables.Words[column], !s.inline[column]
}
