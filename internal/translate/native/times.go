package native

import (
	"math"
	"math/bits"
)

// Times in Jaeger's model are signed; times in OTLP are nanoseconds from 1970 to 2554. Times
// outside of this range become its nearest end.

// microTime converts microseconds since the Unix epoch to nanoseconds.
func microTime(us int64) uint64 {
	switch {
	case us < 0:
		return 0
	case us > math.MaxUint64/1000:
		return math.MaxUint64
	}
	return uint64(us) * 1000
}

// AddSaturating returns a+b, limited to the range of int64.
func AddSaturating(a, b int64) int64 {
	sum := a + b
	switch {
	case a > 0 && b > 0 && sum < 0:
		return math.MaxInt64
	case a < 0 && b < 0 && sum >= 0:
		return math.MinInt64
	}
	return sum
}

// seconds is a google.protobuf.Timestamp or Duration.
type seconds struct{ seconds, nanos int64 }

func (s seconds) add(o seconds) seconds {
	return seconds{AddSaturating(s.seconds, o.seconds), s.nanos + o.nanos}
}

// time returns nanoseconds since the Unix epoch.
func (s seconds) time() uint64 {
	const second = 1_000_000_000
	const beyond = 1 << 40 // seconds beyond the range of OTLP, but far from an overflow
	sec, ns := max(-beyond, min(beyond, s.seconds)), s.nanos
	if ns < 0 || ns >= second {
		sec += ns / second
		if ns %= second; ns < 0 {
			sec, ns = sec-1, ns+second
		}
	}
	if sec < 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(sec), second)
	lo, carry := bits.Add64(lo, uint64(ns), 0)
	if hi+carry > 0 {
		return math.MaxUint64
	}
	return lo
}
