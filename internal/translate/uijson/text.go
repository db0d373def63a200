package uijson

import (
	"encoding/base64"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// appendText appends a JSON string. Most strings need no escaping, and strings are most of a trace,
// so isPlain checks eight bytes at a time.
func appendText(dst []byte, s string) []byte {
	if isPlain(s) {
		return appendPlain(dst, s)
	}
	return otlpdata.AppendJSONString(dst, s)
}

func appendPlain(dst []byte, s string) []byte {
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// appendString appends the type and the value of a tag with the value s.
func appendString(dst []byte, s string) []byte {
	switch {
	case isPlain(s):
		return appendPlain(append(dst, `string","value":`...), s)
	case utf8.ValidString(s):
		return otlpdata.AppendJSONString(append(dst, `string","value":`...), s)
	}
	dst = append(dst, `binary","value":"`...)
	return append(base64.StdEncoding.AppendEncode(dst, []byte(s)), '"')
}

// isPlain reports whether s is ASCII without characters that need escaping.
func isPlain(s string) bool {
	for len(s) >= 8 {
		w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		if hasSpecial(w) {
			return false
		}
		s = s[8:]
	}
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// hasSpecial reports whether any of the eight bytes of w is a control character, a quote, a
// backslash or not ASCII. A byte is below n if subtracting n sets its highest bit, which was not
// set before; it equals c if it is below 1 after xor with c. A borrow reaches the next byte only
// from a byte that is special itself.
func hasSpecial(w uint64) bool {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	quote, backslash := w^ones*'"', w^ones*'\\'
	return (w|(w-ones*' ')|(quote-ones)&^quote|(backslash-ones)&^backslash)&high != 0
}
