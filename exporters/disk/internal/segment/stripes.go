package segment

import (
	"strconv"
	"unsafe"

	"github.com/tracing-backend/tracing/exporters/disk/internal/rows"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// stripes builds the filters of a segment. A filter has the texts of the cells of attributes that vary and are not in a dictionary, and all
// attributes in encoded parts, of whatever kind, by their text. A merge has time for more: it adds the integers that vary, and leaves out
// most of what is in the filter already, which makes up for their room.
type stripes struct {
	layout *layout
	keys   []uint64     // by column: hash of its key
	places []rows.Place // by column
	hashes []uint64     // of the stripe at hand
	broken bool         // the stripe at hand gets no filter: it has too many values, or some that cannot be read
	known  []uint64     // some of hashes, each at the place that it determines; nil: not looked at
	last   []integer    // some integers of the stripe at hand, likewise

	list    []stripe
	section []byte
	most    int // bytes of the section

	lines  []uint32
	text   []byte
	reader otlpdata.SpanReader
}

// integer is a value of a column.
type integer struct {
	value uint64
	place uint32 // 1 + column
}

// withIntegers lets the filters have integers.
func (s *stripes) withIntegers() {
	s.layout.integers = true
	s.known, s.last = make([]uint64, knownHashes), make([]integer, knownIntegers)
}

func newStripes(l *layout) *stripes {
	s := &stripes{layout: l, most: maxFilters, keys: make([]uint64, len(l.tables.Columns)), places: make([]rows.Place, len(l.tables.Columns))}
	for i := range l.tables.Columns {
		s.keys[i], s.places[i] = keyHash(l.tables.Columns[i].Key), l.tables.Columns[i].Place
	}
	return s
}

// filters reports whether filters have the texts of a column, except those that are constant.
func (s *stripes) filters(column uint32) bool {
	switch place := s.places[column]; place {
	case rows.Attribute, rows.EventAttribute:
		return s.layout.inline[column] || s.layout.integers && s.layout.tables.Columns[column].Kind == otlpdata.ValueInt
	default:
		return isBlob(place)
	}
}

// add takes in a text of a column that filters have.
func (s *stripes) add(column uint32, text string) {
	switch place := s.places[column]; {
	case len(s.hashes) > maxStripeValues || s.broken:
		s.broken = true
	case isBlob(place):
		s.addBlob(place, text)
	default:
		s.addHash(valueHash(s.keys[column], text))
	}
}

func (s *stripes) addHash(h uint64) {
	if s.known != nil && h != 0 {
		at := &s.known[h%knownHashes]
		if *at == h {
			return
		}
		*at = h
	}
	s.hashes = append(s.hashes, h)
}

// addInteger takes in an integer of a column of attributes.
func (s *stripes) addInteger(column uint32, v uint64) {
	i := integer{v, column + 1}
	at := &s.last[(v^uint64(column)*0x9e3779b97f4a7c15)*0x9e3779b97f4a7c15>>(64-knownIntegerBits)]
	if *at == i {
		return
	}
	*at = i
	s.text = strconv.AppendInt(s.text[:0], int64(v), 10)
	s.add(column, unsafe.String(unsafe.SliceData(s.text), len(s.text)))
}

// addBlob takes in the attributes of an encoded part.
func (s *stripes) addBlob(place rows.Place, data string) {
	b := []byte(data)
	if place == rows.Extra {
		r := reader{b: b}
		for n := r.int(); n > 0 && r.err == nil; n-- {
			r.uvarint()
		}
		s.broken = s.broken || r.err != nil
		b = r.b
	}
	span, err := s.reader.Read(b)
	if err != nil {
		s.broken = true
		return
	}
	s.addAttributes(span.Attributes)
	for i := range span.Events {
		s.addAttributes(span.Events[i].Attributes)
	}
	for i := range span.Links {
		s.addAttributes(span.Links[i].Attributes)
	}
}

func (s *stripes) addAttributes(kvs []otlpdata.KeyValue) {
	for i := range kvs {
		if len(s.hashes) > maxStripeValues {
			s.broken = true
			return
		}
		s.text = kvs[i].Value.AppendText(s.text[:0])
		s.addHash(valueHash(keyHash(kvs[i].Key), string(s.text)))
	}
}

// end completes the filter of the stripe at hand.
func (s *stripes) end() {
	lines := linesFor(len(s.hashes))
	if s.broken || lines >= maxStripeValues || len(s.section)+filterBytes(lines) > s.most {
		s.list = append(s.list, stripe{lines: -1})
	} else {
		s.list = append(s.list, stripe{lines: lines})
		s.section, s.lines = appendFilter(s.section, s.hashes, s.lines)
	}
	s.hashes, s.broken = s.hashes[:0], false
	clear(s.known)
	clear(s.last)
}
