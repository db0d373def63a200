package column

import (
	"encoding/hex"
	"math/bits"
	"strconv"
	"unsafe"
)

// token is a part of a template: a literal, or an operation.
type token struct {
	op      byte
	width   int // digits
	literal string
}

const opLiteral = opUUID + 1

// form is a template taken apart.
type form struct {
	tokens []token
	uses   int
	length int // of the string without unpadded numbers
	dec    int // slots
	hexes  int
}

// joiner puts strings together.
type joiner struct {
	templates []string
	codes     []uint32
	tokens    []token
	forms     []form
	decimals  [maxSlots]numberSlot
	hex       [maxSlots]hexSlot
	nDecimals int
	nHex      int
	used      [maxSlots]int
}

type numberSlot struct {
	v []uint64
	n int
}

type hexSlot struct {
	buf    []byte
	src    []byte
	p      int // position in digits
	n      int // digits in all
	width  int
	uneven bool
}

// split reads strings that were taken apart.
func (d *Decoder) split(r *reader, dst []string) {
	j := &d.joiner
	size := d.takeSplitApart(r, len(dst))
	if !r.failed() {
		j.join(r, make([]byte, 0, size+j.numbersSize()), j.codes, dst)
	}
	j.release()
}

// takeSplitApart reads all that n strings consist of, and returns how many bytes they have together, but for numbers that are not padded.
func (d *Decoder) takeSplitApart(r *reader, n int) (size int) {
	j := &d.joiner
	j.templates = grow(&j.templates, r.count(n))
	d.plain(r, j.templates)
	codes := grow(&j.codes, n)
	clear(codes)
	if len(j.templates) > 1 {
		d.codes(r, codes)
	}
	j.parse(r)
	j.measure(r, codes)
	size = j.size(r)
	d.slots(r)
	return size
}

// release lets go of the column.
func (j *joiner) release() {
	clear(j.templates)
	clear(j.tokens)
	for i := range j.hex {
		j.hex[i] = hexSlot{buf: kept(j.hex[i].buf)}
	}
}

// parse takes the templates apart.
func (j *joiner) parse(r *reader) {
	j.tokens = j.tokens[:0]
	forms := grow(&j.forms, len(j.templates))
	for i, t := range j.templates {
		if r.failed() {
			return
		}
		forms[i] = j.form(r, t)
	}
}

func (j *joiner) form(r *reader, t string) form {
	first := len(j.tokens)
	var f form
	for len(t) > 0 && len(j.tokens)-first < maxTokens {
		var k token
		k, t = nextToken(r, t)
		j.tokens = append(j.tokens, k)
		f.length += k.width + len(k.literal)
		switch k.op {
		case opDecimal, opPadded:
			f.dec++
		case opHex:
			f.hexes++
		case opUUID:
			f.hexes++
			f.length += uuidLength - uuidDigits
		}
	}
	if len(t) > 0 || f.dec > maxSlots || f.hexes > maxSlots {
		r.fail("a template with too many slots")
	}
	f.tokens = j.tokens[first:len(j.tokens):len(j.tokens)]
	return f
}

// nextToken splits the first token off t, which is not empty.
func nextToken(r *reader, t string) (token, string) {
	if t[0] != escape {
		n := 1
		for n < len(t) && t[n] != escape {
			n++
		}
		return token{op: opLiteral, literal: t[:n]}, t[n:]
	}
	if len(t) < 2 || (t[1] == opPadded || t[1] == opHex) && len(t) < 3 {
		r.fail("a template cut short")
		return token{op: opLiteral}, ""
	}
	switch op := t[1]; {
	case op == opDecimal:
		return token{op: op}, t[2:]
	case op == opUUID:
		return token{op: op, width: uuidDigits}, t[2:]
	case op == opHex && 0 < t[2] && t[2] <= maxHex, op == opPadded && 0 < t[2] && t[2] <= maxDigits:
		return token{op: op, width: int(t[2])}, t[3:]
	}
	r.fail("unknown operation in a template")
	return token{op: opLiteral}, ""
}

// measure counts what the slots must hold.
func (j *joiner) measure(r *reader, codes []uint32) {
	if r.failed() {
		return
	}
	for _, c := range codes {
		if int(c) >= len(j.forms) {
			r.fail("a code beyond the templates")
			return
		}
		j.forms[c].uses++
	}
	for i := range maxSlots {
		j.decimals[i].n, j.hex[i].n, j.hex[i].width, j.hex[i].uneven = 0, 0, 0, false
	}
	j.nDecimals, j.nHex = 0, 0
	for i := range j.forms {
		if f := &j.forms[i]; f.uses > 0 {
			j.measureForm(f)
		}
	}
}

func (j *joiner) measureForm(f *form) {
	dec, hexes := 0, 0
	for _, k := range f.tokens {
		switch k.op {
		case opDecimal, opPadded:
			j.decimals[dec].n += f.uses
			dec++
		case opHex, opUUID:
			s := &j.hex[hexes]
			if s.n == 0 {
				s.width, s.uneven = k.width, k.width%2 != 0
			}
			s.uneven = s.uneven || k.width != s.width
			s.n += f.uses * k.width
			hexes++
		}
	}
	j.nDecimals, j.nHex = max(j.nDecimals, dec), max(j.nHex, hexes)
}

// slots reads the slots.
func (d *Decoder) slots(r *reader) {
	j := &d.joiner
	if r.failed() {
		return
	}
	for i := range j.nDecimals {
		s := &j.decimals[i]
		d.numbers(r, grow(&s.v, s.n))
	}
	for i := range j.nHex {
		s := &j.hex[i]
		s.p = 0
		if s.uneven {
			s.src = r.take((s.n + 1) / 2)
			continue
		}
		s.src = grow(&s.buf, s.n/2)
		d.fixed(r, s.src, s.width/2)
	}
}

// size returns the bytes of all strings, but for numbers that are not padded. It fails if these are more than MaxBytes.
func (j *joiner) size(r *reader) int {
	n := 0
	for i := range j.forms {
		f := &j.forms[i]
		if f.uses > 0 && f.length > (MaxBytes-n)/f.uses {
			r.fail("strings that are too long")
			return 0
		}
		n += f.uses * f.length
	}
	return n
}

// numbersSize returns how many bytes the numbers take at most.
func (j *joiner) numbersSize() int {
	n := 0
	for i := range j.nDecimals {
		for _, x := range j.decimals[i].v {
			n += digits(x)
		}
	}
	return n
}

// digits returns how many decimal digits x has at most: exact or one too many.
func digits(x uint64) int { return bits.Len64(x)*1233>>12 + 1 }

// join puts the strings together in buf, which has room for them.
func (j *joiner) join(r *reader, buf []byte, codes []uint32, dst []string) {
	j.used = [maxSlots]int{}
	for i, c := range codes {
		from := len(buf)
		buf = j.appendString(r, buf, j.forms[c].tokens)
		dst[i] = unsafe.String(unsafe.SliceData(buf[from:]), len(buf)-from)
	}
}

func (j *joiner) appendString(r *reader, buf []byte, tokens []token) []byte {
	dec, hexes := 0, 0
	for _, k := range tokens {
		switch k.op {
		case opLiteral:
			buf = append(buf, k.literal...)
		case opDecimal, opPadded:
			x := j.decimals[dec].v[j.used[dec]]
			j.used[dec]++
			dec++
			buf = appendPadded(r, buf, x, k.width)
		case opHex:
			buf = j.hex[hexes].appendDigits(buf, k.width)
			hexes++
		case opUUID:
			buf = j.hex[hexes].appendUUID(buf)
			hexes++
		}
	}
	return buf
}

// appendPadded appends x in at least width digits.
func appendPadded(r *reader, buf []byte, x uint64, width int) []byte {
	if width > 0 {
		var digits [20]byte
		s := strconv.AppendUint(digits[:0], x, 10)
		if len(s) > width {
			r.fail("a number that is too long")
			return buf
		}
		for range width - len(s) {
			buf = append(buf, '0')
		}
		return append(buf, s...)
	}
	return strconv.AppendUint(buf, x, 10)
}

func (s *hexSlot) appendDigits(buf []byte, n int) []byte {
	if s.p%2 == 0 && n%2 == 0 {
		buf = hex.AppendEncode(buf, s.src[s.p/2:(s.p+n)/2])
		s.p += n
		return buf
	}
	const digits = "0123456789abcdef"
	for range n {
		b := s.src[s.p/2]
		if s.p%2 == 0 {
			b >>= 4
		}
		buf = append(buf, digits[b&15])
		s.p++
	}
	return buf
}

func (s *hexSlot) appendUUID(buf []byte) []byte {
	buf = append(s.appendDigits(buf, 8), '-')
	buf = append(s.appendDigits(buf, 4), '-')
	buf = append(s.appendDigits(buf, 4), '-')
	buf = append(s.appendDigits(buf, 4), '-')
	return s.appendDigits(buf, 12)
}
