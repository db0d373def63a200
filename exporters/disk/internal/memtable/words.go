package memtable

import (
	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
)

// column is a column of the tables with what interning needs.
type column struct {
	hash  uint64 // of place, kind and key
	key   uint64 // hash of the key
	known bool   // false: the definition was lost
	words words
}

// words is the dictionary of a column; the texts are in the tables.
type words struct {
	index  index
	last   uint32 // 1 + the word that was found last by its text, 0 if none
	values int    // texts seen
	// closed: nothing is added any more, since too many texts were new. tried and found count how often looking one up was worth it.
	closed       bool
	tried, found int
	mute         bool // closed, and not worth looking up
	inline       bool // a text of the column stands in a row
}

const (
	// freeWords is how many words a dictionary may have before it must prove its worth.
	freeWords = 256
	// newShare: the dictionary of a column is closed when more than one in so many texts was new; one that is closed is not looked up any
	// more when fewer than one in so many texts was found.
	newShare = 4
	// trial is the number of texts after which looking up is judged.
	trial = 256
)

// word returns 1 + the word for a text of a column of a shape, or 0 when it has none.
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

// lookUp finds or makes the word for a text and makes it the last one of its column.
func (t *Table) lookUp(id uint32, w *words, text string) (bool, error) {
	if w.mute || len(text) > maxWord {
		w.inline = true
		return false, nil
	}
	known := t.tables.Words[id]
	candidates := w.index.search(t.hash.text(text))
	for i, ok := candidates.next(); ok; i, ok = candidates.next() {
		if known[i] == text {
			w.judge(true)
			w.last = i + 1
			return true, nil
		}
	}
	if w.full(len(known), t.options.Limits.Words) {
		w.judge(false)
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

// full reports whether a text that is new stays out of a dictionary of so many words.
func (w *words) full(have, limit int) bool {
	if have >= limit || have >= freeWords && have*newShare > w.values {
		w.closed = true
	}
	return w.closed
}

// judge gives looking up in a closed dictionary up when it does not pay.
func (w *words) judge(found bool) {
	if !w.closed {
		return
	}
	if found {
		w.found++
	}
	if w.tried++; w.tried == trial {
		w.mute = w.found*newShare < w.tried
		w.tried, w.found = 0, 0
	}
}
