package tracestore

import (
	"math"
	"math/bits"
	"time"
)

// Window returns the bounds on span start times, both inclusive, in nanoseconds since the Unix epoch. It is false where no start time
// lies within them.
func (q Query) Window() (from, to uint64, ok bool) {
	from, to = 0, math.MaxUint64
	if !q.From.IsZero() {
		ns, where := unixNano(q.From)
		if where > 0 {
			return 0, 0, false
		}
		from = ns
	}
	if !q.To.IsZero() {
		ns, where := unixNano(q.To)
		if where < 0 {
			return 0, 0, false
		}
		to = ns
	}
	return from, to, from <= to
}

// unixNano is time.Time.UnixNano for all times that a span can have, which reach to the year 2554. where is below 0 for a time before
// them (ns is the least), above 0 for one behind them (ns is the greatest).
func unixNano(t time.Time) (ns uint64, where int) {
	sec := t.Unix()
	if sec < 0 {
		return 0, -1
	}
	high, low := bits.Mul64(uint64(sec), uint64(time.Second))
	ns, carry := bits.Add64(low, uint64(t.Nanosecond()), 0)
	if high != 0 || carry != 0 {
		return math.MaxUint64, 1
	}
	return ns, 0
}
