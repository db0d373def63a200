package uijson

import (
	"encoding/base64"
	"unicode/utf8"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// appendText appends a JSON string. Most texts are plain, which is worth looking at eight bytes at a time: strings are most of a trace.
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

// appendString appends type and value of a tag whose value is s.
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

// isPlain reports whether s is ASCII in which nothing has to be escaped.
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

// hasSpecial reports whether one of the eight bytes of w is a control character, a quote, a backslash or no ASCII. A byte is below n when
// subtracting n sets its highest bit, which was not set before; one that is equal to c is below 1 after xor with c. A borrow reaches the
// next byte only from one that is found anyway.
func hasSpecial(w uint64) bool {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	quote, backslash := w^ones*'"', w^ones*'\\'
	return (w|(w-ones*' ')|(quote-ones)&^quote|(backslash-ones)&^backslash)&high != 0
}
