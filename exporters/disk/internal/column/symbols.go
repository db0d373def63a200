package column

import (
	"math"
	"math/bits"
)

// Symbols are small numbers of one byte each: classes, codes of a table, planes of ids. They are
// encoded as one byte for the width in bits, followed by a stream of fields of that width unless
// the width is 0 (all are zero). The entropy coder of the compressor works on bytes. Symbols of one
// or two bits are therefore packed before compression, so that it codes several at a time. Wider
// symbols are compressed as one byte each or, if that is smaller, packed and stored uncompressed.

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
	if w < 8 && len(dst)-mark > packedSize(len(s), w)+3 {
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

// symbols decodes len(dst) symbols.
func (d *Decoder) symbols(r *reader, dst []byte) {
	w := int(r.byte())
	switch {
	case w == 0:
		clear(dst)
		return
	case w > 8:
		r.fail("symbols exceed 8 bits")
		return
	case w == 8:
		d.z.streamInto(r, dst)
		return
	}
	src := d.z.stream(r, packedSize(len(dst), w), &d.raw)
	if r.failed() {
		return
	}
	unpackSymbols(src, dst, uint(w))
	d.raw = reusable(d.raw)
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

// symbolBits estimates the size in bits of n symbols with the given counts of occurrences.
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
	const frame, perSymbol = 14 * 8, 4 // headers; description of the code, per symbol
	entropy := float64(n)*math.Log2(float64(n)) - sum + frame + perSymbol*float64(distinct)
	return min(entropy, float64(n*bits.Len(uint(last))))
}
