package column

import "math/bits"

// plan chooses how v is written. It leaves the offsets of v, and for a table its values, in e.
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

	if remainder, ok := around(lo, hi, factor); ok && signed {
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

// consider makes p the better of p and what the numbers counted in h would take.
func (p *plan) consider(h *classHist, n int, transform byte, base uint64) {
	packed, coded, width := h.size(n)
	if p.bits < 0 || packed < p.bits {
		p.method, p.transform, p.base, p.width, p.bits = numPacked, transform, base, width, packed
	}
	if coded < p.bits {
		p.method, p.transform, p.base, p.bits = numClasses, transform, base, coded
	}
}

// deltasProbe is how many values tell whether distances are worth counting.
const deltasProbe = 256

// deltas counts the distances of the offsets. After a few values it gives up if they look larger than what limit bits for all would buy.
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
		if i == deltasProbe && float64(total) > perValue*deltasProbe {
			return 0, false
		}
	}
	if falls != 0 {
		return delta, true
	}
	h.halve()
	return ascending, true
}

// bounds returns the least and the greatest number.
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

// commonFactor returns the greatest number that divides every distance from lo, which is the least number and not the only one.
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

// around says whether numbers from lo to hi lie on both sides of zero and far enough from overflow to be divided by factor with a sign,
// and returns the remainder that they share.
func around(lo, hi, factor uint64) (remainder uint64, ok bool) {
	const far = 1 << 61
	l, h := int64(lo), int64(hi)
	if l >= 0 || h <= 0 || l < -far || h > far || factor > far {
		return 0, false
	}
	rem := l % int64(factor)
	if rem < 0 {
		rem += int64(factor)
	}
	return uint64(rem), true
}
