package pipeline

import (
	"fmt"
	"strings"
	"unicode"
)

// ID identifies a configured component of a kind: its type and an optional name that tells
// components of the same type apart. It is written `otlp` or `otlp/internal`.
type ID struct{ Type, Name string }

// maxID is the maximum length of an ID in bytes: IDs are used in metric labels and folder names.
const maxID = 128

// ParseID parses `type` or `type/name`. Spaces, control characters, symbols, `:` and `,` are not
// allowed.
func ParseID(s string) (ID, error) {
	typ, name, named := strings.Cut(s, "/")
	forbidden := func(r rune) bool { return r == ':' || r == ',' || unicode.In(r, unicode.Z, unicode.C, unicode.S) }
	if len(s) > maxID || typ == "" || named && name == "" || strings.ContainsFunc(s, forbidden) {
		return ID{}, fmt.Errorf("%q is not a component id; write type or type/name, for example otlp or otlp/internal", s)
	}
	return ID{Type: typ, Name: name}, nil
}

// String returns `type` or `type/name`.
func (id ID) String() string {
	if id.Name == "" {
		return id.Type
	}
	return id.Type + "/" + id.Name
}

// IsZero reports whether the ID is empty.
func (id ID) IsZero() bool { return id == ID{} }

// UnmarshalText parses an ID like ParseID.
func (id *ID) UnmarshalText(b []byte) (err error) {
	*id, err = ParseID(string(b))
	return err
}

// MarshalText returns String.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }
