package column

import "math/bits"

// The class of a number consists of its bit length and the bit below the highest: 0 and 1 have
// their own classes, followed by two classes for each power of two (2, 3, 4-5, 6-7, 8-11, ...). The
// mantissa is the remaining bits. Finer classes gain nothing for typical distributions; one class
// per power of two would lose 0.05 bits per duration, and 0.25 bits per uniformly distributed
// number.

// classes is the number of classes.
const classes = 128

func classOf(x uint64) byte {
	n := uint(bits.Len64(x))
	if n < 2 {
		return byte(n)
	}
	return byte(2*(n-1)) | byte(x>>(n-2))&1
}

// mantissaBits returns the number of mantissa bits of class c.
func mantissaBits(c byte) uint {
	if c < 2 {
		return 0
	}
	return uint(c)/2 - 1
}

// classTable has the properties of classes for decoding. It has an entry for every byte so that the
// compiler can omit bounds checks.
type classTable struct {
	width   [256]uint8  // bits of the mantissa
	minimum [256]uint64 // smallest number of the class
}

func newClassTable() *classTable {
	t := &classTable{}
	for i := range classes {
		c := byte(i)
		w := mantissaBits(c)
		t.width[c] = uint8(w)
		t.minimum[c] = uint64(c)
		if c >= 2 {
			t.minimum[c] = uint64(2|c&1) << w
		}
	}
	return t
}

// classHist counts numbers by class.
type classHist [classes]uint32

// size estimates the size in bits of n numbers, packed to a common width or encoded by class.
func (h *classHist) size(n int) (packed, coded float64, width uint) {
	mantissas := 0
	for c, k := range h {
		if k == 0 {
			continue
		}
		width = uint(min(c, c/2+1))
		mantissas += int(mantissaBits(byte(c))) * int(k)
	}
	return float64(n) * float64(width), symbolBits(h[:], n) + float64(mantissas), width
}

// halve turns the histogram of even numbers into the histogram of their halves.
func (h *classHist) halve() {
	h[1] = h[2]
	copy(h[2:], h[4:])
	h[classes-1], h[classes-2] = 0, 0
}

// mantissas appends the mantissas of v.
func mantissas(dst []byte, v []uint64) []byte {
	b := bitWriter{dst: dst}
	for _, x := range v {
		w := mantissaBits(classOf(x))
		b.write(x&(1<<w-1), w)
	}
	return b.end()
}
