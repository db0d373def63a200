package column

import (
	"encoding/hex"
	"math/bits"
	"strconv"
	"unsafe"
)

// token is a part of a template: a literal or an operation.
type token struct {
	op      byte
	width   int // number of digits
	literal string
}

const opLiteral = opUUID + 1

// parsedTemplate is a template split into tokens.
type parsedTemplate struct {
	tokens []token
	uses   int // number of strings with this template
	length int // of a string, without unpadded numbers
	dec    int // number of decimal slots
	hexes  int // number of hex slots
}

// splitDecoder builds strings from templates and their variable parts.
type splitDecoder struct {
	templates []string
	codes     []uint32
	tokens    []token
	parsed    []parsedTemplate
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
	n      int // total number of digits
	width  int
	uneven bool
}

// split decodes strings that were split.
func (d *Decoder) split(r *reader, dst []string) {
	j := &d.splits
	size := d.readSplitParts(r, len(dst))
	if !r.failed() {
		j.join(r, make([]byte, 0, size+j.numbersSize()), j.codes, dst)
	}
	j.release()
}

// readSplitParts reads the templates, codes and slots of n strings. It returns the total length of
// the strings in bytes without unpadded numbers.
func (d *Decoder) readSplitParts(r *reader, n int) (size int) {
	j := &d.splits
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

// release removes references to the column.
func (j *splitDecoder) release() {
	clear(j.templates)
	clear(j.tokens)
	for i := range j.hex {
		j.hex[i] = hexSlot{buf: reusable(j.hex[i].buf)}
	}
}

// parse parses the templates.
func (j *splitDecoder) parse(r *reader) {
	j.tokens = j.tokens[:0]
	list := grow(&j.parsed, len(j.templates))
	for i, t := range j.templates {
		if r.failed() {
			return
		}
		list[i] = j.parseTemplate(r, t)
	}
}

func (j *splitDecoder) parseTemplate(r *reader, t string) parsedTemplate {
	first := len(j.tokens)
	var f parsedTemplate
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
		r.fail("template with too many slots")
	}
	f.tokens = j.tokens[first:len(j.tokens):len(j.tokens)]
	return f
}

// nextToken splits the first token off t, which must not be empty.
func nextToken(r *reader, t string) (token, string) {
	if t[0] != escape {
		n := 1
		for n < len(t) && t[n] != escape {
			n++
		}
		return token{op: opLiteral, literal: t[:n]}, t[n:]
	}
	if len(t) < 2 || (t[1] == opPadded || t[1] == opHex) && len(t) < 3 {
		r.fail("truncated template")
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

// measure determines the number of values of each slot.
func (j *splitDecoder) measure(r *reader, codes []uint32) {
	if r.failed() {
		return
	}
	for _, c := range codes {
		if int(c) >= len(j.parsed) {
			r.fail("code exceeds the templates")
			return
		}
		j.parsed[c].uses++
	}
	for i := range maxSlots {
		j.decimals[i].n, j.hex[i].n, j.hex[i].width, j.hex[i].uneven = 0, 0, 0, false
	}
	j.nDecimals, j.nHex = 0, 0
	for i := range j.parsed {
		if f := &j.parsed[i]; f.uses > 0 {
			j.measureForm(f)
		}
	}
}

func (j *splitDecoder) measureForm(f *parsedTemplate) {
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

// slots reads the values of all slots.
func (d *Decoder) slots(r *reader) {
	j := &d.splits
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

// size returns the total length of all strings without unpadded numbers. It fails if the length
// exceeds MaxBytes.
func (j *splitDecoder) size(r *reader) int {
	n := 0
	for i := range j.parsed {
		f := &j.parsed[i]
		if f.uses > 0 && f.length > (MaxBytes-n)/f.uses {
			r.fail("strings too long")
			return 0
		}
		n += f.uses * f.length
	}
	return n
}

// numbersSize returns an upper bound of the total length of the numbers.
func (j *splitDecoder) numbersSize() int {
	n := 0
	for i := range j.nDecimals {
		for _, x := range j.decimals[i].v {
			n += digits(x)
		}
	}
	return n
}

// digits returns the number of decimal digits of x, or one more.
func digits(x uint64) int { return bits.Len64(x)*1233>>12 + 1 }

// join builds the strings in buf, which has sufficient capacity.
func (j *splitDecoder) join(r *reader, buf []byte, codes []uint32, dst []string) {
	j.used = [maxSlots]int{}
	for i, c := range codes {
		from := len(buf)
		buf = j.appendString(r, buf, j.parsed[c].tokens)
		dst[i] = unsafe.String(unsafe.SliceData(buf[from:]), len(buf)-from)
	}
}

func (j *splitDecoder) appendString(r *reader, buf []byte, tokens []token) []byte {
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

// appendPadded appends x, padded with zeros to width digits if width is positive.
func appendPadded(r *reader, buf []byte, x uint64, width int) []byte {
	if width > 0 {
		var digits [20]byte
		s := strconv.AppendUint(digits[:0], x, 10)
		if len(s) > width {
			r.fail("number exceeds its width")
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
