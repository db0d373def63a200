package storequery

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// The counts of a FacetCounter or GroupCounter are kept as varints and texts with their lengths.

func appendNumbers(dst []byte, list ...uint64) []byte {
	for _, n := range list {
		dst = binary.AppendUvarint(dst, n)
	}
	return dst
}

// appendFloats appends numbers so that integers, whose last bits are zeros, are short.
func appendFloats(dst []byte, list ...float64) []byte {
	for _, x := range list {
		dst = binary.AppendUvarint(dst, bits.ReverseBytes64(math.Float64bits(x)))
	}
	return dst
}

func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// keptReader reads numbers and texts, which alias what it reads.
type keptReader struct{ rest string }

func (r *keptReader) number() (n uint64) {
	for i, shift := 0, 0; ; i, shift = i+1, shift+7 {
		n |= uint64(r.rest[i]&0x7f) << shift
		if r.rest[i] < 0x80 {
			r.rest = r.rest[i+1:]
			return n
		}
	}
}

func (r *keptReader) float() float64 { return math.Float64frombits(bits.ReverseBytes64(r.number())) }

func (r *keptReader) text() string {
	n := r.number()
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}
