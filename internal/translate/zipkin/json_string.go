package zipkin

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

// plainLen returns the number of bytes before the first quote, backslash or control character.
func plainLen(b []byte) int {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		quote, slash := x^'"'*ones, x^'\\'*ones
		// The lowest of these bits is exact; higher ones may be wrong.
		found := ((x-' '*ones)&^x | (quote-ones)&^quote | (slash-ones)&^slash) & highs
		if found != 0 {
			return i + bits.TrailingZeros64(found)/8
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < ' ' || c == '"' || c == '\\' {
			break
		}
	}
	return i
}

// quoted reads the string that begins at pos.
func (s *scanner) quoted() string {
	from := s.pos + 1
	s.pos = from + plainLen(s.b[from:])
	if s.at('"') {
		s.pos++
		return unsafeString(s.b[from : s.pos-1])
	}
	return s.unescaped(from)
}

// unescaped reads the rest of a string into text. b[from:pos] contains no escapes.
func (s *scanner) unescaped(from int) string {
	start := len(s.text)
	for {
		s.text = append(s.text, s.b[from:s.pos]...)
		switch {
		case s.at('"'):
			s.pos++
			return unsafeString(s.text[start:])
		case !s.at('\\'):
			s.bad("in string literal")
			return ""
		}
		s.pos++
		if s.escape(); s.err != nil {
			return ""
		}
		from = s.pos
		s.pos += plainLen(s.b[from:])
	}
}

// escape reads the rest of an escape, after the backslash.
func (s *scanner) escape() {
	if s.pos >= len(s.b) {
		s.bad("")
		return
	}
	c := s.b[s.pos]
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		s.pos++
		s.text = utf8.AppendRune(s.text, s.codePoint())
		return
	default:
		s.bad("in string escape code")
		return
	}
	s.text = append(s.text, c)
	s.pos++
}

// codePoint reads the rest of an escape after \u, and the second escape of a surrogate pair.
// AppendRune writes a lone surrogate as U+FFFD.
func (s *scanner) codePoint() rune {
	r := s.hex4()
	if !utf16.IsSurrogate(r) || s.pos+1 >= len(s.b) || s.b[s.pos] != '\\' || s.b[s.pos+1] != 'u' {
		return r
	}
	back := s.pos
	s.pos += 2
	if pair := utf16.DecodeRune(r, s.hex4()); pair != utf8.RuneError || s.err != nil {
		return pair
	}
	s.pos = back
	return r
}

func (s *scanner) hex4() rune {
	var r rune
	for range 4 {
		var d byte = 0xff
		if s.pos < len(s.b) {
			d = hexDigit(s.b[s.pos])
		}
		if d > 15 {
			s.bad("in \\u hexadecimal character escape")
			return utf8.RuneError
		}
		r = r<<4 | rune(d)
		s.pos++
	}
	return r
}

// hexDigit returns the value of a hexadecimal digit of either case, or a number above 15 for any
// other byte.
func hexDigit(c byte) byte {
	switch {
	case c-'0' <= 9:
		return c - '0'
	case c|0x20-'a' <= 5:
		return c | 0x20 - 'a' + 10
	}
	return 0xff
}
