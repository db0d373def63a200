package rows

import "strings"

// Pair is the name of a pair of columns of the table "spans": a list of keys of attributes, each
// with the prefix of its place, and a list of their values.
type Pair string

// The pairs. A string without digits is likely to be one of few values, for which the server keeps
// a dictionary. A string with digits is likely to be an id, an address or a number. A dictionary of
// such strings would be larger than the strings, and slow: to read one row, the server reads the
// whole dictionary.
const (
	PairOrigin Pair = "origin" // strings of resources and scopes
	PairStr    Pair = "str"    // other strings, without digits
	PairText   Pair = "text"   // other strings, with digits
	PairInt    Pair = "int"
	PairFloat  Pair = "float"
	PairOther  Pair = "other" // text forms of booleans, bytes, arrays and maps
)

// Pairs returns all pairs.
func Pairs() []Pair { return []Pair{PairOrigin, PairStr, PairText, PairInt, PairFloat, PairOther} }

// HoldsStrings reports whether the values of the pair are strings.
func (p Pair) HoldsStrings() bool { return p == PairOrigin || p == PairStr || p == PairText }

// PairOfString returns the pair for a string that does not belong to a resource or a scope.
func PairOfString(s string) Pair {
	if strings.ContainsAny(s, "0123456789") {
		return PairText
	}
	return PairStr
}

// Keys returns the column of keys.
func (p Pair) Keys() string { return string(p) + ".key" }

// Values returns the column of values.
func (p Pair) Values() string { return string(p) + ".value" }

// Holds reports whether the pair may have attributes of a place, given by the prefix of keys.
func (p Pair) Holds(prefix string) bool {
	origin := ofPlace(prefix, PrefixResource) || ofPlace(prefix, PrefixScope)
	switch p {
	case PairOrigin:
		return origin
	case PairStr, PairText:
		return !origin
	}
	return true
}
