package segment

import (
	"fmt"
	"hash/maphash"
	"math/bits"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// vocabulary holds the tables of the segment and translates ids of the input. The tables have only
// definitions that rows use, by descending frequency.
type vocabulary struct {
	in     *rows.Tables
	layout *layout
	// By id of the input; undefined for ids that no row uses.
	shapes, resources, scopes, columns []uint32
	dictionaries                       []dictionaryIndex // by column of the input
}

// newVocabulary builds the tables for the analyzed rows.
func newVocabulary(p *analyzer) (*vocabulary, error) {
	v := &vocabulary{in: p.in, layout: &layout{tables: &rows.Tables{}}, shapes: make([]uint32, len(p.in.Shapes)),
		resources: make([]uint32, len(p.in.Resources)), dictionaries: make([]dictionaryIndex, len(p.in.Columns))}
	v.addResources(p)
	v.addShapes(p)
	v.addDictionaries(p)
	v.addConstants(p)
	if err := checkPositions(v.layout.tables); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTooLarge, err)
	}
	return v, v.layout.complete()
}

func (v *vocabulary) addResources(p *analyzer) {
	t := v.layout.tables
	for _, id := range ranked(p.resources) {
		v.resources[id] = uint32(len(t.Resources))
		t.Resources = append(t.Resources, v.in.Resources[id])
	}
}

// addShapes adds the shapes, and their scopes and columns in the order of first use.
func (v *vocabulary) addShapes(p *analyzer) {
	t := v.layout.tables
	v.scopes, v.columns = make([]uint32, len(v.in.Scopes)), make([]uint32, len(v.in.Columns))
	for i := range v.scopes {
		v.scopes[i] = unused
	}
	for i := range v.columns {
		v.columns[i] = unused
	}
	for i := range v.shapes {
		v.shapes[i] = unused
	}
	for _, id := range ranked(p.shapes) {
		old := &v.in.Shapes[id]
		s := rows.Shape{Tenant: old.Tenant, Service: old.Service, Name: old.Name, NameInRow: old.NameInRow, Kind: old.Kind, Status: old.Status}
		s.Scope = take(v.scopes, old.Scope, &t.Scopes, v.in.Scopes)
		for _, c := range old.Columns {
			s.Columns = append(s.Columns, take(v.columns, c, &t.Columns, v.in.Columns))
		}
		v.shapes[id] = uint32(len(t.Shapes))
		t.Shapes = append(t.Shapes, s)
	}
	t.Words = make([][]string, len(t.Columns))
}

const unused = 1<<32 - 1

// take returns the new id of an element of old. If it has none, take adds the element to table.
func take[T any](ids []uint32, id uint32, table *[]T, old []T) uint32 {
	if ids[id] == unused {
		ids[id] = uint32(len(*table))
		*table = append(*table, old[id])
	}
	return ids[id]
}

func (v *vocabulary) addDictionaries(p *analyzer) {
	l := v.layout
	l.words = make([]int, len(l.tables.Columns))
	l.dictionary = make([]bool, len(l.tables.Columns))
	for old, id := range v.columns {
		s := &p.columns[old]
		if texts, ranks, ok := s.dictionary(); ok && id != unused {
			v.dictionaries[old] = newDictionaryIndex(s, v.in.Words[old], ranks)
			l.tables.Words[id], l.words[id], l.dictionary[id] = texts, len(texts), true
		}
	}
}

// addConstants adds the cells that all rows of a shape have. Constant texts become words after the
// dictionary of their column, so that a text of many shapes is stored once.
func (v *vocabulary) addConstants(p *analyzer) {
	l := v.layout
	l.constants = make([][]*rows.Cell, len(l.tables.Shapes))
	added := make([]addedWords, len(l.tables.Columns))
	for _, id := range ranked(p.shapes) {
		shape := v.shapes[id]
		columns := l.tables.Shapes[shape].Columns
		l.constants[shape] = make([]*rows.Cell, len(columns))
		positions := p.positionsOf(id)
		for i, c := range p.cellsOf(id) {
			if positions[i].varies() {
				continue
			}
			if l.tables.Columns[columns[i]].Kind == otlpdata.ValueString {
				c = v.constantWord(&added[columns[i]], columns[i], positions[i].column, c)
			}
			l.constants[shape][i] = &c
		}
	}
}

// addedWords finds the words of a column by text, and by the word of the input, which is faster.
type addedWords struct {
	byText map[string]uint32
	byWord map[uint32]uint32
}

// constantWord returns the word of a column for a cell of column old of the input.
func (v *vocabulary) constantWord(added *addedWords, column, old uint32, c rows.Cell) rows.Cell {
	if word := added.byWord[c.Word]; c.Word > 0 && word > 0 {
		return rows.Cell{Word: word}
	}
	words := &v.layout.tables.Words[column]
	if added.byText == nil {
		added.byText, added.byWord = map[string]uint32{}, map[uint32]uint32{}
		for i, w := range *words {
			added.byText[w] = uint32(i + 1)
		}
	}
	text := v.in.Text(old, c)
	if added.byText[text] == 0 {
		*words = append(*words, text)
		added.byText[text] = uint32(len(*words))
	}
	if c.Word > 0 {
		added.byWord[c.Word] = added.byText[text]
	}
	return rows.Cell{Word: added.byText[text]}
}

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

// countKnown counts the next cell if it is an already counted word. Otherwise it does not move the
// cursor.
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
// as a word (by its number in a dictionary of the input) instead of as a text, or vice versa.
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
// is false if a dictionary is not worthwhile.
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
