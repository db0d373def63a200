package rows

import (
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore/storequery"
)

// place is where an attribute comes from.
type place uint8

const (
	placeSpan place = iota
	placeResource
	placeScope
	placeEvent
	placeLink
	places
)

// The places of elements of arrays follow the places of attributes.
const (
	elements  = places     // added to a place: see ElementPrefix
	sameTexts = 2 * places // likewise: see SameTextPrefix
	allPlaces = 3 * places
)

// prefix returns the prefix of keys.
func (p place) prefix() string {
	prefix := [places]string{PrefixSpan, PrefixResource, PrefixScope, PrefixEvent, PrefixLink}[p%places]
	switch p / places {
	case 1:
		return ElementPrefix(prefix)
	case 2:
		return SameTextPrefix(prefix)
	}
	return prefix
}

// ofOrigin reports whether the attributes belong to a resource or a scope.
func (p place) ofOrigin() bool { return p%places == placeResource || p%places == placeScope }

// keyWords are words that begin with the prefix of a place.
type keyWords struct {
	words
	byKey [allPlaces]map[string]uint32 // key without prefix -> number
}

func newKeyWords() *keyWords {
	k := &keyWords{words: *newWords()}
	for i := range k.byKey {
		k.byKey[i] = make(map[string]uint32)
	}
	return k
}

// of returns the number of a key.
func (k *keyWords) of(p place, key string) uint32 {
	n, ok := k.byKey[p][key]
	if !ok {
		n = k.number(p.prefix() + key)
		k.byKey[p][key] = n
	}
	return n
}

func (k *keyWords) reset() {
	k.words.reset()
	for i := range k.byKey {
		clear(k.byKey[i])
	}
}

// pairs are the attributes of one type: a Nested of keys and values.
type pairs struct {
	ends   fixed
	keys   *keyWords
	values *words // strings that often repeat, and values that are neither strings nor numbers
	texts  *texts // used instead of values for strings that rarely repeat
	number fixed  // values of integers and floats
}

// attributes are the attributes of the spans of a block; see [Pair].
type attributes struct {
	origin, str, text, int, float, other pairs
	seen                                 map[string]struct{} // scratch of addElements
}

// all returns the pairs in the order of [Pairs].
func (a *attributes) all() [6]*pairs {
	return [...]*pairs{&a.origin, &a.str, &a.text, &a.int, &a.float, &a.other}
}

func newAttributes() attributes {
	of := func(typ string) pairs {
		return pairs{ends: fixed{typ: "UInt64", size: 8}, keys: newKeyWords(), values: newWords(), number: fixed{typ: typ, size: 8}}
	}
	a := attributes{of(""), of(""), of(""), of("Int64"), of("Float64"), of(""), make(map[string]struct{})}
	a.text.texts = &texts{}
	return a
}

// columns returns the columns of keys and values.
func (p *pairs) columns() (keys, values column) {
	switch {
	case p.number.typ != "":
		values = &p.number
	case p.texts != nil:
		values = p.texts
	default:
		values = p.values
	}
	return &array{&p.ends, p.keys}, &array{&p.ends, values}
}

// add appends attributes of one place to the open row.
func (a *attributes) add(p place, kvs []otlpdata.KeyValue) {
	for i := range kvs {
		key, v := kvs[i].Key, &kvs[i].Value
		switch v.Kind() {
		case otlpdata.ValueString:
			a.addString(p, key, v.Str())
		case otlpdata.ValueInt:
			a.int.keys.key(a.int.keys.of(p, key))
			a.int.number.uint64(uint64(v.Int()))
		case otlpdata.ValueDouble:
			a.float.keys.key(a.float.keys.of(p, key))
			a.float.number.float64(v.Double())
		default:
			a.other.keys.key(a.other.keys.of(p, key))
			a.other.values.string(v.AsString())
			if v.Kind() == otlpdata.ValueArray {
				a.addElements(p, key, *v)
			}
		}
	}
}

// addElements adds the different elements of an array.
func (a *attributes) addElements(p place, key string, array otlpdata.Value) {
	clear(a.seen)
	isNew := func(text string) bool {
		n := len(a.seen)
		a.seen[text] = struct{}{}
		return len(a.seen) > n
	}
	isNewText := func(text string) bool { return isNew("\x00" + storequery.FacetText(text)) }
	isNewText(array.AsString())
	for e := range array.ElementsInJSON() {
		text, at := e.AsString(), p+elements
		if !isNewText(text) {
			at = p + sameTexts
		}
		if isNew(string(rune(e.Kind())) + text) {
			a.add(at, []otlpdata.KeyValue{{Key: key, Value: e}})
		}
	}
}

func (a *attributes) addString(p place, key, value string) {
	switch {
	case p.ofOrigin():
		a.origin.keys.key(a.origin.keys.of(p, key))
		a.origin.values.string(value)
	case PairOfString(value) == PairText:
		a.text.keys.key(a.text.keys.of(p, key))
		a.text.texts.string(value)
	default:
		a.str.keys.key(a.str.keys.of(p, key))
		a.str.values.string(value)
	}
}

// end ends the row.
func (a *attributes) end() {
	for _, p := range a.all() {
		p.ends.uint64(uint64(p.keys.rows()))
	}
}

// run is a range of attributes of a resource and a scope that is copied to the rows of several
// spans.
type run struct{ from, to [6]mark }

// mark is a position in pairs. Attributes of resources and scopes have no position in texts.
type mark struct{ keys, values, number int }

func (p *pairs) mark() mark { return mark{len(p.keys.keys), len(p.values.keys), len(p.number.data)} }

// repeat re-appends the attributes between two marks.
func (p *pairs) repeat(from, to mark) {
	p.keys.keys = append(p.keys.keys, p.keys.keys[from.keys:to.keys]...)
	p.values.keys = append(p.values.keys, p.values.keys[from.values:to.values]...)
	p.number.data = append(p.number.data, p.number.data[from.number:to.number]...)
}

func (a *attributes) marks() (m [6]mark) {
	for i, p := range a.all() {
		m[i] = p.mark()
	}
	return m
}

// repeat appends a run again.
func (a *attributes) repeat(r *run) {
	for i, p := range a.all() {
		p.repeat(r.from[i], r.to[i])
	}
}

// ResourceKeys returns keys of resource attributes with their prefix.
func ResourceKeys(keys []string) []string {
	out := make([]string, len(keys))
	for i, key := range keys {
		out[i] = PrefixResource + key
	}
	return out
}
