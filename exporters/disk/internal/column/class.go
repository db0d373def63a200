package column

import "math/bits"

// The class of a number is its number of bits and the bit below the highest: 0 and 1 are their own classes, then come two for each power
// of two (2, 3, 4-5, 6-7, 8-11, ...). The mantissa is the rest of the bits. Half octaves follow how numbers are spread so closely that
// finer classes gain nothing; whole ones lose 0.05 bits per duration and 0.25 per number of an even range.

// classes is how many classes there are.
const classes = 128

func classOf(x uint64) byte {
	n := uint(bits.Len64(x))
	if n < 2 {
		return byte(n)
	}
	return byte(2*(n-1)) | byte(x>>(n-2))&1
}

// mantissaBits returns how many bits the mantissas of class c have.
func mantissaBits(c byte) uint {
	if c < 2 {
		return 0
	}
	return uint(c)/2 - 1
}

// classTable is what a decoder looks up for a class. It has a place for every byte so that the compiler sees that none is beyond it.
type classTable struct {
	width [256]uint8  // bits of the mantissa
	least [256]uint64 // number
}

func newClassTable() *classTable {
	t := &classTable{}
	for i := range classes {
		c := byte(i)
		w := mantissaBits(c)
		t.width[c] = uint8(w)
		t.least[c] = uint64(c)
		if c >= 2 {
			t.least[c] = uint64(2|c&1) << w
		}
	}
	return t
}

// classHist counts numbers by class.
type classHist [classes]uint32

// size estimates the bits that n numbers take packed to a width or class-coded.
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

// halve makes the classes of even numbers those of their halves.
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
