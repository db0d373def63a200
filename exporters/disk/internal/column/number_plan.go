package column

import "math/bits"

// plan chooses the encoding of v. It leaves the offsets of v, and for a table its values, in e.
func (e *Encoder) plan(v []uint64, signed bool) plan {
	lo, hi := bounds(v, signed)
	if lo == hi {
		return plan{method: numConstant, base: lo}
	}
	best := e.planTransform(v, lo, hi, signed)
	if e.table.collect(v) {
		if size := e.table.size(lo, hi); size < best.bits {
			return plan{method: numTable, bits: size}
		}
	}
	return best
}

func (e *Encoder) planTransform(v []uint64, lo, hi uint64, signed bool) plan {
	factor := commonFactor(v, lo)
	e.setOffsets(v, lo, factor)
	best := plan{base: lo, factor: factor, bits: -1}
	var h classHist
	for _, w := range e.offsets {
		h[classOf(w)]++
	}
	best.consider(&h, len(v), offset, lo)

	if remainder, ok := crossesZero(lo, hi, factor); ok && signed {
		e.shift = uint64(int64(lo-remainder) / int64(factor))
		h = classHist{}
		for _, w := range e.offsets {
			h[classOf(zigzag(w+e.shift))]++
		}
		best.consider(&h, len(v), magnitude, remainder)
	}
	if transform, worth := e.deltas(&h, best.bits); worth {
		best.consider(&h, len(v), transform, lo)
	}
	return best
}

// consider replaces p if the numbers counted in h take less space.
func (p *plan) consider(h *classHist, n int, transform byte, base uint64) {
	packed, coded, width := h.size(n)
	if p.bits < 0 || packed < p.bits {
		p.method, p.transform, p.base, p.width, p.bits = numPacked, transform, base, width, packed
	}
	if coded < p.bits {
		p.method, p.transform, p.base, p.bits = numClasses, transform, base, coded
	}
}

// deltaProbe is the number of values after which deltas may give up.
const deltaProbe = 256

// deltas counts the differences of consecutive offsets. It gives up after deltaProbe values if the
// differences take more than limit bits, extrapolated to all values.
func (e *Encoder) deltas(h *classHist, limit float64) (transform byte, worth bool) {
	*h = classHist{}
	prev, total, falls := uint64(0), 0, uint64(0)
	perValue := limit / float64(len(e.offsets))
	for i, w := range e.offsets {
		d := w - prev
		prev = w
		falls |= d >> 63
		z := zigzag(d)
		h[classOf(z)]++
		total += bits.Len64(z)
		if i == deltaProbe && float64(total) > perValue*deltaProbe {
			return 0, false
		}
	}
	if falls != 0 {
		return delta, true
	}
	h.halve()
	return ascending, true
}

// bounds returns the minimum and maximum.
func bounds(v []uint64, signed bool) (lo, hi uint64) {
	flip := uint64(0)
	if signed {
		flip = 1 << 63
	}
	lo, hi = v[0]^flip, v[0]^flip
	for _, x := range v {
		x ^= flip
		lo, hi = min(lo, x), max(hi, x)
	}
	return lo ^ flip, hi ^ flip
}

// commonFactor returns the gcd of all distances from lo. lo is the minimum, and
// not all values are equal.
func commonFactor(v []uint64, lo uint64) uint64 {
	g := uint64(0)
	for _, x := range v {
		d := x - lo
		for d != 0 {
			if g == 0 {
				g = d
				break
			}
			g, d = d, g%d
		}
		if g == 1 {
			break
		}
	}
	return g
}

func (e *Encoder) setOffsets(v []uint64, lo, factor uint64) {
	w := grow(&e.offsets, len(v))
	if factor == 1 {
		for i, x := range v {
			w[i] = x - lo
		}
		return
	}
	for i, x := range v {
		w[i] = (x - lo) / factor
	}
}

// crossesZero reports whether the range from lo to hi includes negative and positive numbers that
// are small enough for signed division by factor. It returns their common remainder.
func crossesZero(lo, hi, factor uint64) (remainder uint64, ok bool) {
	const limit = 1 << 61
	l, h := int64(lo), int64(hi)
	if l >= 0 || h <= 0 || l < -limit || h > limit || factor > limit {
		return 0, false
	}
	rem := l % int64(factor)
	if rem < 0 {
		rem += int64(factor)
	}
	return uint64(rem), true
}
