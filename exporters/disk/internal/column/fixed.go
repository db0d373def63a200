package column

// A column of fixed-width values starts with a mask of one bit per byte position. A bit is set if
// all values have the same byte there. The mask is followed by these constant bytes, and by the
// other bytes of each value. Ids are random and not compressed, but may have constant bytes: 64-bit
// trace ids are stored as 128-bit ids with eight zero bytes, and others begin with a timestamp.

func maskBytes(width int) int { return (width + 7) / 8 }

// fixed appends values of width bytes.
func (e *Encoder) fixed(dst, v []byte, width int) []byte {
	mark := len(dst)
	dst = append(dst, make([]byte, maskBytes(width))...)
	varying := e.varying[:0]
	for p := range width {
		if varies(v, width, p) {
			varying = append(varying, p)
			continue
		}
		dst[mark+p/8] |= 1 << (p % 8)
		dst = append(dst, v[p])
	}
	e.varying = varying
	if len(varying) == width {
		return append(dst, v...)
	}
	for ; len(v) > 0; v = v[width:] {
		for _, p := range varying {
			dst = append(dst, v[p])
		}
	}
	return dst
}

// varies reports whether the bytes at position p differ between values.
func varies(v []byte, width, p int) bool {
	for i := p + width; i < len(v); i += width {
		if v[i] != v[p] {
			return true
		}
	}
	return false
}

// fixed decodes values of width bytes into dst.
func (d *Decoder) fixed(r *reader, dst []byte, width int) {
	mask := r.take(maskBytes(width))
	varying := d.varying[:0]
	first := make([]byte, 0, 64)
	for p := range width {
		if mask == nil || mask[p/8]>>(p%8)&1 == 0 {
			varying = append(varying, p)
			first = append(first, 0)
			continue
		}
		first = append(first, r.byte())
	}
	d.varying = varying
	src := r.take(len(dst) / width * len(varying))
	if r.failed() {
		return
	}
	if len(varying) == width {
		copy(dst, src)
		return
	}
	for ; len(dst) > 0; dst = dst[width:] {
		copy(dst, first)
		for i, p := range varying {
			dst[p] = src[i]
		}
		src = src[len(varying):]
	}
}
