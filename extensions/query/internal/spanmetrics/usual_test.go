package spanmetrics

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Of 20 services without an incident, hardly one is said to have one.
func TestQuietHours(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	shares := []float64{0, 0.001, 0.005, 0.02, 0.1}
	const hours = 50
	alarms, start := 0, time.Date(2024, 5, 1, 0, 0, 0, 0, time.UTC)
	for hour := range hours {
		end := start.Add(time.Duration(hour) * time.Hour)
		p := NewPeriods(end.Add(-time.Hour), end, end, 60)
		alarm := false
		for service := range 20 {
			slots := make([]counts, p.slots())
			calls := 10 << (service % 8)
			for i := range slots {
				for range calls/2 + random.IntN(calls) {
					slots[i].calls++
					if random.Float64() < shares[service%len(shares)] {
						slots[i].errors++
					}
					slots[i].durations.Observe(uint64(1e7 * (1 + random.ExpFloat64())))
				}
			}
			h := learn(slots, slotsPerDay, slot)
			if found := h.incidents(&series{p.UsualStart, slot, slots}, &p); len(found) > 0 {
				t.Logf("hour %d, service %d with %d calls: %+v, usual %+v", hour, service, calls, found, h.usual)
				alarm = true
			}
		}
		if alarm {
			alarms++
		}
	}
	if alarms > 1 {
		t.Errorf("false alarms in %d of %d quiet hours", alarms, hours)
	}
}

// Time without calls is quiet, too: ten calls an hour are usual if all come in the same minutes.
func TestUsualOfFewCalls(t *testing.T) {
	slots := make([]counts, slotsPerDay)
	for i := 7; i < len(slots); i += 4 {
		slots[i].calls = 10
		for range 10 {
			slots[i].durations.Observe(1e7)
		}
	}
	usual := learn(slots, slotsPerDay, slot).usual
	if calls := usual.callsIn(time.Hour); calls < 9.5 || calls > 10.5 {
		t.Errorf("%g calls an hour are usual: %+v", calls, usual)
	}
}

// Slots begin at full quarters of an hour, incidents do not: at every minute, the 35 minutes in
// which every ninth of a few calls fails are found after two hours and a half without errors.
func TestUsualAtEachMinute(t *testing.T) {
	for offset := range 15 {
		end := time.Date(2024, 5, 1, 12, offset, 30, 0, time.UTC)
		p := NewPeriods(end.Add(-time.Hour), end, end, 60)
		minutes := &series{p.usualEnd().Add(-3 * time.Hour), time.Minute, make([]counts, 180)}
		slots := make([]counts, p.slots())
		for i := range minutes.counts {
			c := &minutes.counts[i]
			for call := range 4 {
				c.calls++
				c.durations.Observe(1e7)
				if n := (i-145)*4 + call; n >= 0 && n%9 == 0 {
					c.errors++
				}
			}
			slots[minutes.time(i).Sub(p.UsualStart)/slot].add(c)
		}
		h := learn(slots, slotsPerDay, p.usualEnd().Sub(p.slotTime(len(slots)-1)))
		found := apart(h.incidents(&series{p.UsualStart, slot, slots}, &p))
		if len(found) > 0 {
			found = apart(h.incidents(minutes, &p))
		}
		if want := minutes.time(145); len(found) != 1 || !found[0].End.IsZero() || found[0].Start.Sub(want).Abs() > 3*time.Minute {
			t.Errorf("at minute %d: %+v, want one since %s", offset, found, want)
		}
	}
}
