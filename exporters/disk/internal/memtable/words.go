package memtable

import (
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
)

// column holds the properties of a column that interning needs.
type column struct {
	hash  uint64 // of place, kind and key
	key   uint64 // hash of the key
	known bool   // false: the definition was lost
	words words
}

// words is the state of the dictionary of a column. The words themselves, which are texts that rows
// refer to by number, are in the tables.
type words struct {
	index  index
	last   uint32 // 1 + last word that was found by its text, 0 if none
	values int    // number of texts seen
	// closed is set when too many texts were new: no more words are added. tried and found then
	// count lookups and hits.
	closed       bool
	tried, found int
	skipLookup   bool // closed, and lookups are not worthwhile
	inline       bool // a row holds a text of the column that is not a word
}

const (
	// freeWords is the number of words that a dictionary may have regardless of the share of new
	// texts.
	freeWords = 256
	// newShare is an inverse share. A dictionary is closed when more than 1/newShare of the texts
	// were new. Lookups in a closed dictionary stop when they find fewer than 1/newShare of the
	// texts.
	newShare = 4
	// lookupTrial is the number of lookups after which their hit rate is evaluated.
	lookupTrial = 256
)

// word returns 1 + the word for a text of a column of a shape, or 0 if it has none.
func (t *Table) word(at *slot, text string) (uint32, error) {
	w := &t.columns[at.column].words
	w.values++
	known := t.tables.Words[at.column]
	if at.word > 0 && known[at.word-1] == text {
		return at.word, nil
	}
	if w.last == 0 || known[w.last-1] != text {
		found, err := t.lookUp(at.column, w, text)
		if err != nil || !found {
			return 0, err
		}
	}
	at.word = w.last
	return w.last, nil
}

// lookUp finds or defines the word for a text and makes it the last one of its column.
func (t *Table) lookUp(id uint32, w *words, text string) (bool, error) {
	if w.skipLookup || len(text) > maxWord {
		w.inline = true
		return false, nil
	}
	known := t.tables.Words[id]
	candidates := w.index.find(t.hash.text(text))
	for i, ok := candidates.next(); ok; i, ok = candidates.next() {
		if known[i] == text {
			w.recordLookup(true)
			w.last = i + 1
			return true, nil
		}
	}
	if w.rejectsNew(len(known), t.options.Limits.Words) {
		w.recordLookup(false)
		w.inline = true
		return false, nil
	}
	t.item = rows.AppendWord(t.item[:0], id, uint32(len(known)), text)
	if err := t.define(t.item); err != nil {
		return false, err
	}
	w.last = uint32(len(known)) + 1
	return true, nil
}

// rejectsNew reports whether a new text is not added to a dictionary of the given size.
func (w *words) rejectsNew(have, limit int) bool {
	if have >= limit || have >= freeWords && have*newShare > w.values {
		w.closed = true
	}
	return w.closed
}

// recordLookup counts a lookup in a closed dictionary, and stops further lookups if too few
// succeed.
func (w *words) recordLookup(found bool) {
	if !w.closed {
		return
	}
	if found {
		w.found++
	}
	if w.tried++; w.tried == lookupTrial {
		w.skipLookup = w.found*newShare < w.tried
		w.tried, w.found = 0, 0
	}
}
