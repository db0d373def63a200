package spanmetrics

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// Periods are whole steps, include the minute of the end, and have about the given number of
// points. The usual is learned from slots of the day before their end.
func TestPeriods(t *testing.T) {
	f := func(length time.Duration, end string, points int, want string) {
		t.Helper()
		now, err := time.Parse(time.DateTime, "2024-05-01 12:34:56")
		if err != nil {
			t.Fatal(err)
		}
		to, err := time.Parse(time.TimeOnly, end)
		if err != nil {
			t.Fatal(err)
		}
		to = to.AddDate(2024, 4, 0)
		p := NewPeriods(to.Add(-length), to, now, points)
		show := func(t time.Time) string { return t.UTC().Format("02 15:04:05") }
		got := fmt.Sprintf("%d x %s: %s to %s, usual from %s", p.Points, p.Step, show(p.Start), show(p.End), show(p.UsualStart))
		if got != want {
			t.Errorf("%s until %s: got %s, want %s", length, end, got, want)
		}
	}
	const hour, minute = time.Hour, time.Minute
	f(hour, "12:34:56", 60, "61 x 1m0s: 01 11:34:00 to 01 12:34:56, usual from 30 12:45:00")
	f(hour, "12:00:00", 60, "60 x 1m0s: 01 11:00:00 to 01 12:00:00, usual from 30 12:00:00")
	f(hour, "12:00:30", 60, "61 x 1m0s: 01 11:00:00 to 01 12:01:00, usual from 30 12:15:00")
	f(hour, "12:34:56", 50, "31 x 2m0s: 01 11:34:00 to 01 12:34:56, usual from 30 12:45:00")
	f(5*minute, "12:34:56", 60, "6 x 1m0s: 01 12:29:00 to 01 12:34:56, usual from 30 12:45:00")
	f(time.Second, "12:34:00", 60, "1 x 1m0s: 01 12:33:00 to 01 12:34:00, usual from 30 12:45:00")
	f(0, "12:34:56", 60, "1 x 1m0s: 01 12:34:00 to 01 12:34:56, usual from 30 12:45:00")
	f(10*minute, "12:40:00", 60, "10 x 1m0s: 01 12:30:00 to 01 12:34:56, usual from 30 12:45:00")
	f(10*minute, "12:50:00", 60, "10 x 1m0s: 01 12:40:00 to 01 12:40:00, usual from 30 12:45:00")
	f(hour, "12:34:56", 1, "2 x 1h0m0s: 01 11:00:00 to 01 12:34:56, usual from 30 12:45:00")
}

// Every time range has periods.
func TestLongPeriods(t *testing.T) {
	for _, end := range []int64{0, 1, math.MaxInt64} {
		for _, points := range []int{1, 2, 60, 1000} {
			p := NewPeriods(time.Unix(0, 0), time.Unix(0, end), noon, points)
			if p.Points < 1 || p.Points > points+1 || p.Step < time.Minute || p.End.Before(p.Start) || p.slots() < 1 || p.slots() > slotsPerDay {
				t.Errorf("until %d, %d points: %+v", end, points, p)
			}
		}
	}
}
