package column

import "encoding/binary"

// bitWriter appends fields of up to 64 bits, the lowest bit first.
type bitWriter struct {
	dst []byte
	acc uint64
	n   uint // bits in acc, below 64
}

// write appends the lowest w bits of v; the others must be zero.
func (b *bitWriter) write(v uint64, w uint) {
	b.acc |= v << b.n
	if b.n+w < 64 {
		b.n += w
		return
	}
	b.dst = binary.LittleEndian.AppendUint64(b.dst, b.acc)
	b.acc = v >> (64 - b.n)
	b.n += w - 64
}

// end appends the remaining bits, padded to whole bytes, and returns the result.
func (b *bitWriter) end() []byte {
	for n := b.n; n > 0; n -= min(n, 8) {
		b.dst = append(b.dst, byte(b.acc))
		b.acc >>= 8
	}
	return b.dst
}

// bitSlack is the number of bytes that must follow the last field that [field] reads.
const bitSlack = 9

// field returns w bits (0 to 64) from bit position p of src, which needs [bitSlack] bytes after its
// last field.
func field(src []byte, p, w uint) uint64 {
	b := src[p>>3:]
	_ = b[8]
	x := binary.LittleEndian.Uint64(b)>>(p&7) | uint64(b[8])<<1<<(63-p&7)
	return x & (1<<w - 1)
}

// maxShortField is the maximum width of a field that always lies within eight bytes.
const maxShortField = 57

// shortField is like field for w up to maxShortField.
func shortField(src []byte, p, w uint) uint64 {
	return binary.LittleEndian.Uint64(src[p>>3:]) >> (p & 7) & (1<<w - 1)
}

// packed appends each value of v with w bits.
func packed(dst []byte, v []uint64, w uint) []byte {
	b := bitWriter{dst: dst}
	for _, x := range v {
		b.write(x, w)
	}
	return b.end()
}

// packedSize returns the number of bytes of n fields of w bits.
func packedSize(n, w int) int { return (n*w + 7) / 8 }

// bits reads n bytes of fields and returns them followed by bitSlack bytes, or nil if r is too
// short.
func (d *Decoder) bits(r *reader, n int) []byte {
	b := r.take(n)
	if b == nil {
		return nil
	}
	d.fields = append(append(d.fields[:0], b...), make([]byte, bitSlack)...)
	return d.fields
}
