package probabilisticsampler

import (
	"math"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// thresholdOf returns the threshold for a share from 0 to 1. precision is the number of hexadecimal
// digits after leading digits 0 or f, so that percentages near 0 and 100 keep their precision.
func thresholdOf(share float64, precision int) otlpdata.Threshold {
	const digits = otlpdata.ThresholdDigits
	if share <= 0 {
		return otlpdata.RejectAll
	}
	t := otlpdata.RejectAll - otlpdata.Threshold(math.Round(share*float64(otlpdata.RejectAll)))
	if t >= otlpdata.RejectAll { // share is too small to be represented
		t = otlpdata.RejectAll - 1
	}
	digit := func(i int) otlpdata.Threshold { return t >> (4 * (digits - 1 - i)) & 0xf }
	leading := 0
	for leading < digits && digit(leading) == digit(0) && (digit(0) == 0 || digit(0) == 0xf) {
		leading++
	}
	shift := 4 * max(0, digits-leading-precision)
	rounded := (t + (1<<shift)/2) >> shift << shift
	if rounded >= otlpdata.RejectAll {
		return t
	}
	return rounded
}
