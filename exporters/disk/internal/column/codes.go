package column

import "math/bits"

// Methods of a column of codes, its first byte.
const (
	codesPlanes  = 1 + iota // number of planes (0 to 4), each as symbols: the lowest bytes, the next bytes, ...
	codesNumbers            // numbers
)

// codes appends v in the smaller of the two encodings, unless h excludes one.
func (e *Encoder) codes(dst []byte, v []uint32, h *Hint) []byte {
	var all uint32
	for _, c := range v {
		all |= c
	}
	planes := (bits.Len32(all) + 7) / 8
	if planes >= 2 && skip(&h.skipPlanes) {
		return e.codeNumbers(dst, v)
	}
	mark := len(dst)
	dst = e.planes(append(dst, codesPlanes, byte(planes)), v, planes)
	if planes < 2 || skip(&h.skipNumbers) {
		return dst
	}
	e.second = e.codeNumbers(e.second[:0], v)
	if len(e.second) < len(dst)-mark {
		skipNext(&h.skipPlanes, len(v))
		return append(dst[:mark], e.second...)
	}
	skipNext(&h.skipNumbers, len(v))
	return dst
}

func (e *Encoder) planes(dst []byte, v []uint32, n int) []byte {
	for p := range n {
		plane := grow(&e.classes, len(v))
		for i, c := range v {
			plane[i] = byte(c >> (8 * p))
		}
		dst = e.symbols(dst, plane)
	}
	return dst
}

// codes decodes a column of codes.
func (d *Decoder) codes(r *reader, dst []uint32) {
	switch r.byte() {
	case codesPlanes:
		d.planes(r, dst)
	case codesNumbers:
		u := grow(&d.number, len(dst))
		d.numbers(r, u)
		for i, x := range u {
			if x > 1<<32-1 {
				r.fail("code exceeds 32 bits")
			}
			dst[i] = uint32(x)
		}
	default:
		r.fail("unknown method of codes")
	}
}

func (d *Decoder) planes(r *reader, dst []uint32) {
	n := int(r.byte())
	if n > 4 {
		r.fail("codes exceed 32 bits")
		return
	}
	clear(dst)
	for p := range n {
		plane := grow(&d.symbol, len(dst))
		d.symbols(r, plane)
		if r.failed() {
			return
		}
		for i, b := range plane {
			dst[i] |= uint32(b) << (8 * p)
		}
	}
}

// asUint64s returns v as numbers.
func (e *Encoder) asUint64s(v []uint32) []uint64 {
	u := grow(&e.code, len(v))
	for i, c := range v {
		u[i] = uint64(c)
	}
	return u
}

// codeNumbers appends v as numbers.
func (e *Encoder) codeNumbers(dst []byte, v []uint32) []byte {
	return e.numbers(append(dst, codesNumbers), e.asUint64s(v), false)
}
