package column

import "strings"

// A split string consists of a template and its variable parts. The template is the string, which
// must not contain zero bytes, with the variable parts replaced:
//
//	00 01      a decimal number without leading zeros
//	00 02 w    a decimal number of w digits (1 to 19) with leading zeros
//	00 03 n    n lower-case hex digits (1 to 254)
//	00 04      a UUID: 32 lower-case hex digits as 8-4-4-4-12
//
// The k-th number of each string is in slot k of the numbers, the k-th hex run in slot k of the hex
// digits. A slot of numbers is a column of numbers. A slot of hex runs of one even length is a
// column of fixed width, half that length; otherwise it holds the digits of all runs one after the
// other, two per byte, the first in the upper half.
const (
	escape    = 0
	opDecimal = 1
	opPadded  = 2
	opHex     = 3
	opUUID    = 4

	maxSlots  = 16  // of each kind; further parts of a string stay literal
	maxDigits = 19  // decimal digits that always fit 64 bits
	maxHex    = 254 // digits of one run; a longer run is split
	maxTokens = 4*maxSlots + 1

	uuidLength = 36
	uuidDigits = 32
)

// Classification of bytes.
const (
	digit     = 1 << iota // 0 to 9
	hexLetter             // a to f
	zeroByte
	wordOther // a letter that is not a lower-case hex digit

	hexDigit = digit | hexLetter
	word     = hexDigit | wordOther
)

// byteKinds is the classification of each byte.
type byteKinds [256]byte

func newByteKinds() *byteKinds {
	k := &byteKinds{0: zeroByte}
	for c := range k {
		switch b := byte(c); {
		case b-'0' < 10:
			k[c] = digit
		case b-'a' < 6:
			k[c] = hexLetter
		case (b|0x20)-'a' < 26:
			k[c] = wordOther
		}
	}
	return k
}

// isUUID reports whether s starts with 8-4-4-4-12 lower-case hex digits.
func (k *byteKinds) isUUID(s string) bool {
	if len(s) < uuidLength || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return false
	}
	for i := range uuidLength {
		if k[s[i]]&hexDigit == 0 && s[i] != '-' {
			return false
		}
	}
	return strings.Count(s[:uuidLength], "-") == 4
}

// run is a maximal run of hex digits.
type run struct {
	from, to int
	kinds    byte // of its bytes: digit, hexLetter or both
}

func (r run) len() int      { return r.to - r.from }
func (r run) mixed() bool   { return r.kinds == hexDigit }
func (r run) letters() bool { return r.kinds&hexLetter != 0 }
func (r run) digits() bool  { return r.kinds&digit != 0 }

// runAt returns the run that starts at position i of s.
func (k *byteKinds) runAt(s string, i int) run {
	r := run{from: i}
	for i < len(s) && k[s[i]]&hexDigit != 0 {
		r.kinds |= k[s[i]]
		i++
	}
	r.to = i
	return r
}

// bounded reports whether the run is not part of a longer word of s.
func (k *byteKinds) bounded(s string, r run) bool {
	return (r.from == 0 || k[s[r.from-1]]&word == 0) && (r.to == len(s) || k[s[r.to]]&word == 0)
}

// digitsEnd returns the end of the decimal digits of s that start at i.
func (k *byteKinds) digitsEnd(s string, i int) int {
	for i < len(s) && k[s[i]] == digit {
		i++
	}
	return i
}
