package tracestore

import (
	"math"
	"math/bits"
	"time"
)

// Window returns the bounds of span start times, both inclusive, in nanoseconds since the Unix
// epoch. ok is false if no start time lies within them.
func (q Query) Window() (from, to uint64, ok bool) {
	from, to = 0, math.MaxUint64
	if !q.From.IsZero() {
		ns, outside := unixNano(q.From)
		if outside > 0 {
			return 0, 0, false
		}
		from = ns
	}
	if !q.To.IsZero() {
		ns, outside := unixNano(q.To)
		if outside < 0 {
			return 0, 0, false
		}
		to = ns
	}
	return from, to, from <= to
}

// unixNano is like time.Time.UnixNano, but covers all start times that a span can have, up to the
// year 2554. outside is negative for a time before 1970 (ns is 0) and positive for a time after
// that range (ns is the maximum).
func unixNano(t time.Time) (ns uint64, outside int) {
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
