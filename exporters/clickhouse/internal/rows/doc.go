// Package rows converts spans to rows of the tables "spans" and "payload", and rows of "payload"
// back to spans.
//
// Files: encode.go reads a batch and fills blocks; table.go lists the columns; call.go and
// origin.go join values; column.go encodes values in ClickHouse's Native format; attributes.go
// lists attributes by type; body.go, shape.go and form.go cut what is left of a span when its
// columns are removed into parts that compress well; decode.go restores spans.
package rows

import "strings"

// Prefixes of attribute keys in the table "spans", for the place of the attribute.
const (
	PrefixSpan     = "span."
	PrefixResource = "resource."
	PrefixScope    = "scope."
	PrefixEvent    = "event."
	PrefixLink     = "link."
)

// The elements of an array (otlpdata.Value.ElementsInJSON) are attributes as well: they have the
// key of the array with another prefix, so that conditions find them like other values. The array
// itself is in PairOther.
//
// An element has a prefix of its own if facets show it with the same text as another one of its
// array, because they count a text once for each span.
const (
	elementSuffix   = "[]."
	sameTextSuffix  = "[=]."
	attributeSuffix = "."
)

// ElementPrefix returns the prefix of the keys of elements that facets count, for a prefix of
// attributes.
func ElementPrefix(prefix string) string {
	return strings.TrimSuffix(prefix, attributeSuffix) + elementSuffix
}

// SameTextPrefix is like ElementPrefix for elements that facets do not count.
func SameTextPrefix(prefix string) string {
	return strings.TrimSuffix(prefix, attributeSuffix) + sameTextSuffix
}

// ofPlace reports whether a prefix is the one of a place, or of elements of its arrays.
func ofPlace(prefix, place string) bool {
	return prefix == place || prefix == ElementPrefix(place) || prefix == SameTextPrefix(place)
}

// OfElement reports whether a key has the prefix of an element.
func OfElement(key string) bool {
	place, _, _ := strings.Cut(key, attributeSuffix)
	return strings.HasSuffix(place, "]")
}

// Names of the tables that spans are inserted into.
const (
	SpansTable   = "spans"
	PayloadTable = "payload"
)
