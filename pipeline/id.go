package pipeline

import (
	"fmt"
	"strings"
	"unicode"
)

// ID names one configured component: its type and, where a file has several of a type, a name: `otlp` or `otlp/internal`.
type ID struct{ Type, Name string }

// maxID bounds an id, in bytes: it becomes a label of metrics and the name of a folder.
const maxID = 128

// ParseID reads the form that configuration files use. Spaces, control characters, symbols, `:` and `,` have no place in it.
func ParseID(s string) (ID, error) {
	typ, name, named := strings.Cut(s, "/")
	odd := func(r rune) bool { return r == ':' || r == ',' || unicode.In(r, unicode.Z, unicode.C, unicode.S) }
	if len(s) > maxID || typ == "" || named && name == "" || strings.ContainsFunc(s, odd) {
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

// IsZero reports whether the id names nothing.
func (id ID) IsZero() bool { return id == ID{} }

// UnmarshalText is ParseID.
func (id *ID) UnmarshalText(b []byte) (err error) {
	*id, err = ParseID(string(b))
	return err
}

// MarshalText returns String.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }
