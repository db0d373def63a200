package aggregates

import (
	"math"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestSharesOfNothing checks shares and errors if samples have few or no matching spans.
func TestSharesOfNothing(t *testing.T) {
	for _, c := range []struct {
		of                   shares
		count                uint64
		share, relativeError float64
	}{
		{of: shares{{0, 1, 0}, {0, 1, 0}}, share: 1},
		{of: shares{{0, 0.5, 1}, {0, 1, 0}}, share: 0.5, relativeError: 1},
		// 100 spans, and up to about 10 that were not found.
		{of: shares{{0, 0.1, 1}, {100, 1, 0}}, count: 100, share: math.Nextafter(1, 0), relativeError: 0.1},
		{of: shares{{3, 0.5, 0.5}, {3, 0.5, 0.5}}, count: 6, share: 0.5, relativeError: math.Sqrt(2) / 4},
		{of: shares{{1, 0.001, 1}}, count: 1, share: 0.001, relativeError: 1},
	} {
		if share, e := c.of.merged(c.count), c.of.relativeError(); share != c.share || math.Abs(e-c.relativeError) > 1e-9 {
			t.Errorf("%v: share %v, error %v; want %v, %v", c.of, share, e, c.share, c.relativeError)
		}
	}
	var odd shares
	for _, share := range []float64{0, -1, 2, math.NaN(), math.Inf(1)} {
		odd.add(1, share, math.NaN())
	}
	if odd.merged(5) != 1 || odd.relativeError() != 0 {
		t.Errorf("shares out of range: %v", odd)
	}
}
