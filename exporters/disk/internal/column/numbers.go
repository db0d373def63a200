package column

import (
	"encoding/binary"
	"math/bits"
)

// Methods of a column of numbers, the low half of its first byte; the high half is the transform.
const (
	numConstant = 1 + iota // the value
	numPacked              // base, factor, width, fields
	numClasses             // base, factor, classes (symbols), mantissas
	numTable               // values (numPacked without a first byte), codes (symbols)
)

// Transforms make numbers smaller. They use w = (v-base)/factor, which is exact and not negative:
const (
	offset    = iota // w
	magnitude        // zigzag of v/factor, for negative and positive numbers; base is the remainder
	delta            // zigzag of the difference from the previous w
	ascending        // difference from the previous w, which is never larger
)

// maxTable is the maximum number of distinct numbers of a table.
const maxTable = 128

// plan describes how a vector of numbers is encoded.
type plan struct {
	method, transform byte
	base, factor      uint64
	width             uint    // of numPacked
	bits              float64 // estimated size in bits
}

// numbers appends v as a column of numbers, in two's complement if signed.
func (e *Encoder) numbers(dst []byte, v []uint64, signed bool) []byte {
	if len(v) == 0 {
		return dst
	}
	p := e.plan(v, signed)
	dst = append(dst, p.method|p.transform<<4)
	switch p.method {
	case numConstant:
		return appendSigned(dst, p.base)
	case numTable:
		dst = append(dst, byte(len(e.table.values)-1))
		dst = packedTable(dst, e.table.ranked(), signed)
		return e.symbols(dst, e.table.rankedCodes())
	}
	dst = appendSigned(dst, p.base)
	dst = binary.AppendUvarint(dst, p.factor)
	u := e.transformed(p)
	if p.method == numPacked {
		return packed(append(dst, byte(p.width)), u, p.width)
	}
	e.classes = e.classes[:0]
	for _, x := range u {
		e.classes = append(e.classes, classOf(x))
	}
	return mantissas(e.symbols(dst, e.classes), u)
}

// packedTable appends the values of a table as offsets from the minimum.
func packedTable(dst []byte, v []uint64, signed bool) []byte {
	lo, hi := bounds(v, signed)
	w := uint(bits.Len64(hi - lo))
	dst = append(appendSigned(dst, lo), byte(w))
	b := bitWriter{dst: dst}
	for _, x := range v {
		b.write(x-lo, w)
	}
	return b.end()
}

// transformed applies the transform to the offsets that plan left in e, in place.
func (e *Encoder) transformed(p plan) []uint64 {
	u := e.offsets
	switch p.transform {
	case magnitude:
		for i, w := range u {
			u[i] = zigzag(w + e.shift)
		}
	case delta:
		prev := uint64(0)
		for i, w := range u {
			u[i], prev = zigzag(w-prev), w
		}
	case ascending:
		prev := uint64(0)
		for i, w := range u {
			u[i], prev = w-prev, w
		}
	}
	return u
}

// numbers decodes a column of numbers.
func (d *Decoder) numbers(r *reader, dst []uint64) {
	if len(dst) == 0 {
		return
	}
	head := r.byte()
	method, transform := head&15, head>>4
	switch method {
	case numConstant:
		v := r.signed()
		for i := range dst {
			dst[i] = v
		}
		return
	case numTable:
		d.tableNumbers(r, dst)
		return
	}
	base, factor := r.signed(), r.uvarint()
	switch method {
	case numPacked:
		d.packedNumbers(r, dst)
	case numClasses:
		d.classNumbers(r, dst)
	default:
		r.fail("unknown method of numbers")
	}
	if !r.failed() {
		restore(r, dst, transform, base, factor)
	}
}

func (d *Decoder) packedNumbers(r *reader, dst []uint64) {
	w := uint(r.byte())
	if w > 64 {
		r.fail("numbers exceed 64 bits")
		return
	}
	src := d.bits(r, packedSize(len(dst), int(w)))
	if src == nil {
		return
	}
	if w <= maxShortField {
		for i := range dst {
			dst[i] = shortField(src, uint(i)*w, w)
		}
		return
	}
	for i := range dst {
		dst[i] = field(src, uint(i)*w, w)
	}
}

func (d *Decoder) classNumbers(r *reader, dst []uint64) {
	symbols := grow(&d.symbol, len(dst))
	d.symbols(r, symbols)
	total, widest := 0, uint8(0)
	for _, c := range symbols {
		if c >= classes {
			r.fail("unknown class of a number")
			return
		}
		w := d.classes.width[c]
		total += int(w)
		widest = max(widest, w)
	}
	src := d.bits(r, packedSize(total, 1))
	if src == nil {
		return
	}
	p := uint(0)
	if widest <= maxShortField {
		for i, c := range symbols {
			w := uint(d.classes.width[c])
			dst[i] = d.classes.minimum[c] | shortField(src, p, w)
			p += w
		}
		return
	}
	for i, c := range symbols {
		w := uint(d.classes.width[c])
		dst[i] = d.classes.minimum[c] | field(src, p, w)
		p += w
	}
}

func (d *Decoder) tableNumbers(r *reader, dst []uint64) {
	var values [256]uint64
	table := values[:int(r.byte())+1]
	base := r.signed()
	d.packedNumbers(r, table)
	codes := grow(&d.symbol, len(dst))
	d.symbols(r, codes)
	if r.failed() {
		return
	}
	for i, c := range codes {
		if int(c) >= len(table) {
			r.fail("code exceeds the table")
			return
		}
		dst[i] = base + table[c]
	}
}

// restore reverts a transform in place.
func restore(r *reader, dst []uint64, transform byte, base, factor uint64) {
	w := uint64(0)
	switch transform {
	case offset:
		for i, u := range dst {
			dst[i] = base + u*factor
		}
	case magnitude:
		for i, u := range dst {
			dst[i] = base + unzigzag(u)*factor
		}
	case delta:
		for i, u := range dst {
			w += unzigzag(u)
			dst[i] = base + w*factor
		}
	case ascending:
		for i, u := range dst {
			w += u
			dst[i] = base + w*factor
		}
	default:
		r.fail("unknown transform of numbers")
	}
}

// grow returns *buf with n elements of undefined values.
func grow[T any](buf *[]T, n int) []T {
	if cap(*buf) < n {
		*buf = make([]T, n)
	}
	*buf = (*buf)[:n]
	return *buf
}
