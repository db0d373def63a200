package column

import "math"

// Methods of a column of doubles, its first byte.
const (
	floatBits    = 1 + iota // numbers: the IEEE 754 bits; a common factor shortens converted single-precision values
	floatDecimal            // exponent, numbers: value = number / 10^exponent
)

// maxExponent is small enough that 10^maxExponent is exact in a double, so that the division rounds
// only once.
const maxExponent = 18

// powers are the powers of ten up to maxExponent.
type powers [maxExponent + 1]float64

func newPowers() (p powers) {
	p[0] = 1
	for i := range maxExponent {
		p[i+1] = 10 * p[i]
	}
	return p
}

// decimal returns the integer m for which m / 10^e is exactly f, if there is one.
func (p *powers) decimal(f float64, e int) (m int64, ok bool) {
	const exact = 1 << 53
	x := math.RoundToEven(f * p[e])
	if !(math.Abs(x) < exact) { // also false for NaN
		return 0, false
	}
	m = int64(x)
	return m, math.Float64bits(float64(m)/p[e]) == math.Float64bits(f)
}

// exponent returns the minimum number of decimals that represents every value exactly.
func (p *powers) exponent(v []float64) (e int, ok bool) {
	for _, f := range v {
		for {
			if _, ok := p.decimal(f, e); ok {
				break
			}
			if e++; e > maxExponent {
				return 0, false
			}
		}
	}
	return e, true
}

func (e *Encoder) floats(dst []byte, v []float64) []byte {
	u := grow(&e.number, len(v))
	if exp, ok := e.powers.exponent(v); ok && e.decimals(v, u, exp) {
		return e.numbers(append(dst, floatDecimal, byte(exp)), u, true)
	}
	for i, f := range v {
		u[i] = math.Float64bits(f)
	}
	return e.numbers(append(dst, floatBits), u, false)
}

// decimals fills u. It fails if a value is too large for the number of decimals that another one
// needs.
func (e *Encoder) decimals(v []float64, u []uint64, exp int) bool {
	for i, f := range v {
		m, ok := e.powers.decimal(f, exp)
		if !ok {
			return false
		}
		u[i] = uint64(m)
	}
	return true
}

func (d *Decoder) floats(r *reader, dst []float64) {
	u := grow(&d.number, len(dst))
	switch r.byte() {
	case floatBits:
		d.numbers(r, u)
		for i, x := range u {
			dst[i] = math.Float64frombits(x)
		}
	case floatDecimal:
		exp := int(r.byte())
		if exp > maxExponent {
			r.fail("exponent too large")
			return
		}
		d.numbers(r, u)
		for i, x := range u {
			dst[i] = float64(int64(x)) / d.powers[exp]
		}
	default:
		r.fail("unknown method of doubles")
	}
}
