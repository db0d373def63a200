package zipkin

import (
	"errors"
	"fmt"
	"strconv"
	"unsafe"
)

// scanner reads one JSON document sequentially and builds no objects: callers request the value
// that they expect next.
//
//	for ok := s.array(); ok; ok = s.element() {
//		for key, ok := s.object(); ok; key, ok = s.member() {
//			switch key {
//			case "name":
//				name = s.str()
//			default:
//				s.skip()
//			}
//		}
//	}
//	return s.end()
//
// The body of each loop must consume exactly one value. After the first error every list is at its
// end and every value is absent, so only end has to be checked. Every value may be null, which
// reads as an empty list or the zero value. Strings alias the document, or text if they contain
// escapes, and are valid until the next reset. Bytes that are not UTF-8 are accepted; lone
// surrogates in \u escapes become U+FFFD. Syntax errors have the texts of encoding/json.
type scanner struct {
	b    []byte
	pos  int
	err  error
	text []byte // unescaped strings
}

// maxSkipDepth is the maximum nesting of skipped values, which are read by recursion.
const maxSkipDepth = 512

var errEnd = errors.New("unexpected end of JSON input")

// reset starts the document b, which must not change while its strings are in use.
func (s *scanner) reset(b []byte) { *s = scanner{b: b, text: s.text[:0]} }

// end returns the first error, or an error if the document is followed by more data.
func (s *scanner) end() error {
	if s.err == nil && (s.next() != 0 || s.pos < len(s.b)) {
		s.bad("after top-level value")
	}
	return s.err
}

// fail records an error of the caller and ends the reading.
func (s *scanner) fail(err error) {
	if s.err == nil {
		s.err = err
	}
	s.pos = len(s.b)
}

// bad fails because of the byte at pos or the end of the document.
func (s *scanner) bad(context string) {
	if s.pos >= len(s.b) {
		s.fail(errEnd)
		return
	}
	s.fail(fmt.Errorf("invalid character %s %s", quoteByte(s.b[s.pos]), context))
}

func quoteByte(c byte) string {
	switch c {
	case '\'':
		return `'\''`
	case '"':
		return `'"'`
	}
	q := strconv.Quote(string(rune(c)))
	return "'" + q[1:len(q)-1] + "'"
}

// next skips white space and returns the following byte without consuming it, or 0 at the end.
func (s *scanner) next() byte {
	for ; s.pos < len(s.b); s.pos++ {
		c := s.b[s.pos]
		if c > ' ' || c != ' ' && c != '\n' && c != '\r' && c != '\t' {
			return c
		}
	}
	return 0
}

// jsonKind is the kind of a value, which its first byte determines.
type jsonKind uint8

const (
	jsonNone jsonKind = iota // no value: a syntax error or the end
	jsonNull
	jsonBool
	jsonNumber
	jsonString
	jsonArray
	jsonObject
)

func (k jsonKind) String() string {
	return [...]string{"nothing", "null", "bool", "number", "string", "array", "object"}[k]
}

// kind returns the kind of the next value without consuming it.
func (s *scanner) kind() jsonKind {
	switch c := s.next(); c {
	case '"':
		return jsonString
	case '{':
		return jsonObject
	case '[':
		return jsonArray
	case 't', 'f':
		return jsonBool
	case 'n':
		return jsonNull
	default:
		if c == '-' || '0' <= c && c <= '9' {
			return jsonNumber
		}
		return jsonNone
	}
}

// mismatch consumes null. Any other value is an error, because it does not have the requested kind.
func (s *scanner) mismatch(want jsonKind) {
	switch k := s.kind(); k {
	case jsonNull:
		s.word("null")
	case jsonNone:
		s.bad("looking for beginning of value")
	default:
		s.fail(fmt.Errorf("cannot read %s as %s at byte %d", k, want, s.pos))
	}
}

// array begins an array and reports whether it has a first element.
func (s *scanner) array() bool {
	if s.next() != '[' {
		s.mismatch(jsonArray)
		return false
	}
	s.pos++
	if s.next() == ']' {
		s.pos++
		return false
	}
	return s.err == nil
}

// element moves to the next element of an array and reports whether there is one.
func (s *scanner) element() bool {
	switch s.next() {
	case ',':
		s.pos++
		return true
	case ']':
		s.pos++
		return false
	}
	s.bad("after array element")
	return false
}

// object begins an object and returns the key of its first member, if there is one.
func (s *scanner) object() (key string, ok bool) {
	if s.next() != '{' {
		s.mismatch(jsonObject)
		return "", false
	}
	s.pos++
	if s.next() == '}' {
		s.pos++
		return "", false
	}
	return s.key()
}

// member moves to the next member of an object and returns its key, if there is one.
func (s *scanner) member() (key string, ok bool) {
	switch s.next() {
	case ',':
		s.pos++
		return s.key()
	case '}':
		s.pos++
		return "", false
	}
	s.bad("after object key:value pair")
	return "", false
}

func (s *scanner) key() (key string, ok bool) {
	if s.next() != '"' {
		s.bad("looking for beginning of object key string")
		return "", false
	}
	key = s.quoted()
	if s.next() != ':' {
		s.bad("after object key")
		return "", false
	}
	s.pos++
	return key, s.err == nil
}

// str reads a string.
func (s *scanner) str() string {
	if s.next() != '"' {
		s.mismatch(jsonString)
		return ""
	}
	return s.quoted()
}

// bool reads a boolean.
func (s *scanner) bool() bool {
	switch s.next() {
	case 't':
		return s.word("true")
	case 'f':
		s.word("false")
	default:
		s.mismatch(jsonBool)
	}
	return false
}

// word reads a literal and reports whether it was present.
func (s *scanner) word(w string) bool {
	for i := range len(w) {
		if s.pos >= len(s.b) || s.b[s.pos] != w[i] {
			s.bad(fmt.Sprintf("in literal %s (expecting %s)", w, quoteByte(w[i])))
			return false
		}
		s.pos++
	}
	return true
}

// scalar reads any value as text: the content of a string, "" for null, and the JSON of anything
// else.
func (s *scanner) scalar() string {
	switch s.next() {
	case '"':
		return s.quoted()
	case 'n':
		s.word("null")
		return ""
	}
	return s.raw()
}

// raw reads any value and returns its JSON.
func (s *scanner) raw() string {
	s.next()
	from := s.pos
	s.skip()
	if s.err != nil {
		return ""
	}
	return unsafeString(s.b[from:s.pos])
}

// skip reads any value and ignores it.
func (s *scanner) skip() { s.skipTo(maxSkipDepth) }

func (s *scanner) skipTo(depth int) {
	if depth == 0 {
		s.fail(errors.New("exceeded max depth"))
		return
	}
	text := len(s.text)
	switch s.kind() {
	case jsonString:
		s.quoted()
	case jsonNumber:
		s.number()
	case jsonBool:
		s.bool()
	case jsonArray:
		for ok := s.array(); ok; ok = s.element() {
			s.skipTo(depth - 1)
		}
	case jsonObject:
		for _, ok := s.object(); ok; _, ok = s.member() {
			s.skipTo(depth - 1)
		}
	default:
		s.mismatch(jsonNone)
	}
	s.text = s.text[:text]
}

// unsafeString returns b as a string without copying.
func unsafeString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
