package host

import (
	"math"
	"testing"
)

// What is promised to queries and to everything else is at most the soft memory limit, unless the
// configuration asks for more than there is.
func TestDivideMemory(t *testing.T) {
	const mib, unlimited = 1 << 20, math.MaxInt64
	f := func(fixed, available, configured int64, querying bool, limit, queries int64) {
		t.Helper()
		if p := divideMemory(fixed, available, configured, querying); p.limit != limit || p.queries != queries {
			t.Errorf("%d MiB fixed of %d, %d configured: limit %d, queries %d, want %d and %d", fixed/mib, available/mib, configured/mib,
				p.limit/mib, p.queries/mib, limit/mib, queries/mib)
		}
	}
	f(600*mib, unlimited, 0, true, 800*mib, 200*mib) // a quarter of the limit
	f(600*mib, unlimited, 0, false, 600*mib, 0)
	f(600*mib, unlimited, 512*mib, true, 1112*mib, 512*mib)
	f(600*mib, 2000*mib, 0, true, 800*mib, 200*mib) // the rest of the memory is not needed
	f(600*mib, 760*mib, 0, true, 760*mib, 160*mib)  // less than a quarter, so that the sum fits
	f(36*mib, unlimited, 0, true, 52*mib, 16*mib)   // the minimum
	f(600*mib, 610*mib, 0, true, 610*mib, 16*mib)   // more than there is, with a warning
	f(600*mib, 800*mib, 512*mib, true, 800*mib, 512*mib)
}
