package scan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestSplitWindow checks each start time against the definition of the window and its parts.
func TestSplitWindow(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	instant := func(last uint64) uint64 {
		ns := rng.Uint64N(5*Minute) / (Minute / 4) * (Minute / 4)
		if ns += rng.Uint64N(3); ns > 0 {
			ns--
		}
		return last - 5*Minute + ns
	}
	for _, last := range []uint64{5 * Minute, 1000*Minute + 7, math.MaxUint64} {
		for range 5000 {
			w, oldest, newest := Range{instant(last), instant(last)}, instant(last), instant(last)
			if w.To < w.From || newest < oldest || newest < w.From || oldest > w.To {
				continue
			}
			d := SplitWindow(w, oldest, newest)
			for range 30 {
				start := instant(last)
				in := start >= w.From && start <= w.To && start >= oldest && start <= newest
				byMinute := d.HasMinutes && start/Minute >= d.Minutes.From && start/Minute <= d.Minutes.To
				byRow := d.Rest.Contains(start)
				has := start >= oldest && start <= newest
				if has && (in != (byMinute || byRow) || byMinute && byRow) || in != d.All.Contains(start) {
					t.Fatalf("start %d, window %+v, rows from %d to %d: wrong split %+v", start, w, oldest, newest, d)
				}
			}
		}
	}
	if d := SplitWindow(Range{Minute - 1, 3 * Minute}, 0, math.MaxUint64); fmt.Sprint(d.Minutes) != "{1 2}" || len(d.Rest) != 2 {
		t.Errorf("split is %+v", d)
	}
}
