package rows

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"net/netip"

	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// form is how a text is stored.
type form byte

const (
	formPlain  form = iota // the text is one of the texts
	formHex                // the rest has the bytes that it spells in lower-case hexadecimal, with their number
	formIPv4               // the rest has the four bytes of an address
	formDigits             // its runs of digits are in the rest; the text between them is one of the texts
)

// A run of at least minDigits digits becomes a number in the rest. In the text, a mark and the
// number of digits replace it. A text that contains the byte of the mark is stored in another form.
const (
	minDigits = 3
	maxDigits = 18 // 10^18 fits in 64 bits
	minHex    = 16 // digits of a text that is stored in the form of its bytes
	digitMark = 0xff
)

// text adds a text and returns its form.
func (c *cut) text(s []byte) form {
	if len(s) >= minHex && len(s)%2 == 0 && c.hex(s) {
		return formHex
	}
	if c.ipv4(s) {
		return formIPv4
	}
	if c.digits(s) {
		return formDigits
	}
	c.texts = append(c.texts, s)
	return formPlain
}

// hex adds the bytes of a text in hexadecimal.
func (c *cut) hex(s []byte) bool {
	for _, b := range s {
		if !isDigit(b) && (b < 'a' || b > 'f') {
			return false
		}
	}
	c.rest = binary.AppendUvarint(c.rest, uint64(len(s)/2))
	at := len(c.rest)
	c.rest = append(c.rest, make([]byte, len(s)/2)...)
	_, err := hex.Decode(c.rest[at:], s)
	return err == nil
}

// ipv4 adds the address that a text is.
func (c *cut) ipv4(s []byte) bool {
	const shortest, longest = len("0.0.0.0"), len("255.255.255.255")
	if len(s) < shortest || len(s) > longest || !isDigit(s[0]) || bytes.Count(s, []byte(".")) != 3 {
		return false
	}
	a, err := netip.ParseAddr(string(s))
	if err != nil || !a.Is4() {
		return false
	}
	b := a.As4()
	c.rest = append(c.rest, b[:]...)
	return true
}

func isDigit(b byte) bool { return '0' <= b && b <= '9' }

// digits adds a text with runs of digits. It reports whether there are any and the text has no
// mark.
func (c *cut) digits(s []byte) bool {
	known, kept := len(c.rest), len(c.template)
	for i := 0; i < len(s); {
		run := runOf(s[i:])
		switch {
		case s[i] == digitMark:
			c.rest, c.template = c.rest[:known], c.template[:kept]
			return false
		case run >= minDigits:
			c.template = append(c.template, digitMark, byte(run))
			c.rest = appendDigits(c.rest, s[i:i+run])
		default:
			run = max(run, 1)
			c.template = append(c.template, s[i:i+run]...)
		}
		i += run
	}
	if len(c.rest) == known {
		c.template = c.template[:kept]
		return false
	}
	c.texts = append(c.texts, c.template[kept:])
	return true
}

// runOf returns the number of digits at the start of a text, at most maxDigits.
func runOf[T string | []byte](s T) (n int) {
	for n < min(len(s), maxDigits) && isDigit(s[n]) {
		n++
	}
	return n
}

// appendDigits appends a number with n digits, in the fewest bytes that hold every such number.
func appendDigits(dst, digits []byte) []byte {
	v := uint64(0)
	for _, d := range digits {
		v = v*10 + uint64(d-'0')
	}
	for range sizeOfDigits(len(digits)) {
		dst = append(dst, byte(v))
		v >>= 8
	}
	return dst
}

// sizeOfDigits returns the number of bytes that hold every number with n digits.
func sizeOfDigits(n int) int {
	return [...]int{minDigits: 2, 2, 3, 3, 3, 4, 4, 5, 5, 5, 6, 6, 7, 7, 8, maxDigits: 8}[n]
}

// text appends the next text, with its length.
func (j *joint) text(dst []byte, f form) ([]byte, error) {
	switch {
	case f == formHex:
		return j.hex(dst)
	case f == formIPv4:
		return j.ipv4(dst)
	case f > formDigits || len(j.texts) == 0:
		return dst, errBody
	}
	s := j.texts[0]
	j.texts = j.texts[1:]
	if f == formPlain {
		return appendText(dst, s), nil
	}
	return j.digits(dst, s)
}

func (j *joint) hex(dst []byte) ([]byte, error) {
	content, size, ok := contentOf(j.rest, protoenc.Length)
	if _, err := j.next(size, ok); err != nil {
		return dst, err
	}
	dst = binary.AppendUvarint(dst, 2*uint64(len(content)))
	for i := range len(content) {
		const digits = "0123456789abcdef"
		dst = append(dst, digits[content[i]>>4], digits[content[i]&15])
	}
	return dst, nil
}

func (j *joint) ipv4(dst []byte) ([]byte, error) {
	const size = 4
	b, err := j.next(size, true)
	if err != nil {
		return dst, err
	}
	at := len(dst) + 1
	return protoenc.EndMessage(netip.AddrFrom4([size]byte([]byte(b))).AppendTo(append(dst, 0)), at, 1), nil
}

// digits appends a text whose runs of digits are in the rest.
func (j *joint) digits(dst []byte, s string) ([]byte, error) {
	const reserved = 1 // byte for the length
	at := len(dst) + reserved
	dst = append(dst, 0)
	for i := 0; i < len(s); i++ {
		if s[i] != digitMark {
			dst = append(dst, s[i])
			continue
		}
		if i++; i == len(s) || s[i] < minDigits || s[i] > maxDigits {
			return dst, errBody
		}
		n := int(s[i])
		b, err := j.next(sizeOfDigits(n), true)
		if err != nil {
			return dst, err
		}
		v := uint64(0)
		for k := range len(b) {
			v |= uint64(b[k]) << (8 * k)
		}
		end := len(dst) + n
		dst = append(dst, make([]byte, n)...)
		for k := end - 1; k >= end-n; k-- {
			dst[k] = byte('0' + v%10)
			v /= 10
		}
	}
	return protoenc.EndMessage(dst, at, reserved), nil
}
