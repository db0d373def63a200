package rows

import (
	"cmp"
	"encoding/binary"
	"iter"
	"maps"
	"slices"
)

// Definitions collects the definitions of a damaged log. A definition that was lost with a record
// may be repeated in a later one, after rows that need it. A reader therefore collects all
// definitions before it reads rows. The zero value is ready to use.
type Definitions struct {
	found map[Definition][]byte
}

// Definition identifies a definition: an item that assigns an id to a column, word, scope,
// resource, shape or service.
type Definition struct {
	Tag    Tag
	Column uint64 // of a word
	ID     uint64
}

// ReadDefinition decodes the beginning of a definition. It does not check whether the rest is
// valid.
func ReadDefinition(tag Tag, payload []byte) Definition {
	d, n := Definition{Tag: tag}, 0
	if tag == TagWord {
		d.Column, n = binary.Uvarint(payload)
	}
	d.ID, _ = binary.Uvarint(payload[max(n, 0):])
	return d
}

// Add adds the definitions of a record up to the first invalid item. If an id has several
// definitions, the first one applies.
func (d *Definitions) Add(record []byte) {
	if d.found == nil {
		d.found = make(map[Definition][]byte)
	}
	for len(record) > 0 {
		tag, payload, rest, err := NextItem(record)
		if err != nil {
			return
		}
		record = rest
		if tag == TagRow || tag == TagPosition {
			continue
		}
		def := ReadDefinition(tag, payload)
		if _, ok := d.found[def]; !ok {
			d.found[def] = slices.Clone(payload)
		}
	}
}

// All returns all definitions in an order that [Tables.Define] accepts: a definition comes after
// the definitions that it refers to.
func (d *Definitions) All() iter.Seq2[Tag, []byte] {
	order := slices.SortedFunc(maps.Keys(d.found), func(a, b Definition) int {
		return cmp.Or(cmp.Compare(rank(a.Tag), rank(b.Tag)), cmp.Compare(a.Column, b.Column), cmp.Compare(a.ID, b.ID))
	})
	return func(yield func(Tag, []byte) bool) {
		for _, def := range order {
			if !yield(def.Tag, d.found[def]) {
				return
			}
		}
	}
}

// rank orders shapes after everything that they refer to, and words after columns.
func rank(t Tag) int {
	if t == TagShape {
		return int(TagPosition)
	}
	return int(t)
}
