package column

import (
	"math"
	"math/bits"
)

// Symbols are small numbers, one byte each: classes, codes of a table, planes of ids. On disk they are one byte for the width in bits,
// then, unless that is 0 (all are zero), a stream of fields of that width. The compressor's entropy coder works on bytes, so symbols of
// one or two bits are packed before it sees them (it then codes several at a time), wider ones are left a byte each or, where that is
// smaller, packed and stored.

// symbols appends s.
func (e *Encoder) symbols(dst, s []byte) []byte {
	var all byte
	for _, x := range s {
		all |= x
	}
	w := bits.Len8(all)
	switch {
	case w == 0:
		return append(dst, 0)
	case w <= 2:
		e.fields = packSymbols(e.fields[:0], s, w)
		return e.z.stream(append(dst, byte(w)), e.fields)
	}
	mark := len(dst)
	dst = e.z.stream(append(dst, 8), s)
	if w < 8 && len(dst)-mark > bytesOf(len(s), w)+3 {
		e.fields = packSymbols(e.fields[:0], s, w)
		dst = stored(append(dst[:mark], byte(w)), e.fields)
	}
	return dst
}

func packSymbols(dst, s []byte, w int) []byte {
	b := bitWriter{dst: dst}
	for _, x := range s {
		b.write(uint64(x), uint(w))
	}
	return b.end()
}

// symbols reads len(dst) symbols.
func (d *Decoder) symbols(r *reader, dst []byte) {
	w := int(r.byte())
	switch {
	case w == 0:
		clear(dst)
		return
	case w > 8:
		r.fail("symbols of more than 8 bits")
		return
	case w == 8:
		d.z.streamInto(r, dst)
		return
	}
	src := d.z.stream(r, bytesOf(len(dst), w), &d.raw)
	if r.failed() {
		return
	}
	unpackSymbols(src, dst, uint(w))
	d.raw = kept(d.raw)
}

func unpackSymbols(src, dst []byte, w uint) {
	var acc, n uint
	mask := byte(1<<w - 1)
	for i := range dst {
		if n < w {
			acc |= uint(src[0]) << n
			src = src[1:]
			n += 8
		}
		dst[i] = byte(acc) & mask
		acc >>= w
		n -= w
	}
}

// symbolBits estimates the size of n symbols of which hist counts the occurrences of each, in bits.
func symbolBits(hist []uint32, n int) float64 {
	distinct, last, sum := 0, 0, 0.0
	for s, c := range hist {
		if c > 0 {
			distinct, last = distinct+1, s
			sum += float64(c) * math.Log2(float64(c))
		}
	}
	if distinct == 1 {
		return 16
	}
	const frame, perSymbol = 14 * 8, 4 // headers; what a symbol takes in the description of its code
	entropy := float64(n)*math.Log2(float64(n)) - sum + frame + perSymbol*float64(distinct)
	return min(entropy, float64(n*bits.Len(uint(last))))
}
