package spanmetrics

import (
	"fmt"
	"time"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	// maxSteps is the maximum number of points of a series, more than the number of minutes in a
	// week.
	maxSteps = 11_000
	// settlingTime is the delay after the end of a minute before its calls are reported. Earlier,
	// spans that are still on their way would be missing, and the rate would seem to drop.
	settlingTime = 10 * time.Second
	// maxUnit is the maximum length of a unit of a Grid, in minutes.
	maxUnit = 60
)

// Grid holds the times of the points of a result. A point describes the calls that start within the
// window before it. Stores are queried for whole units of time that have ended, so that no point is
// based on a part of a unit.
type Grid struct {
	unit         int64 // in minutes: the longest time that divides step, window and maxUnit
	first, last  int64 // points, in units since the Unix epoch; there are none if first is above last
	step, window int64 // in units
}

// NewGrid returns the points for a query. The step and the window are rounded up to minutes.
func NewGrid(q *Query, now time.Time) (Grid, error) {
	step, window := minutesOf(q.Step), minutesOf(q.RatePer)
	unit := divisor(divisor(step, window), maxUnit)
	g := Grid{unit: unit, first: 1, step: step / unit, window: window / unit}
	begin := max(max(q.End.Unix(), 0)-int64(q.Lookback/time.Second), 0)
	end := min(q.End.Unix(), now.Add(-settlingTime).Unix())
	if end < begin {
		return g, nil
	}
	length := unit * 60
	g.last = end / length
	if g.last*length < begin {
		return g, nil
	}
	steps := (g.last*length - begin) / (step * 60)
	if steps >= maxSteps {
		return g, fmt.Errorf("lookback has %d steps of %d minutes, which is more than %d", steps+1, step, maxSteps)
	}
	g.first = g.last - steps*g.step
	return g, nil
}

// minutesOf rounds up to whole minutes, at least one.
func minutesOf(d time.Duration) int64 { return int64((max(d, 1)-1)/time.Minute) + 1 }

// divisor returns the largest number that divides a and b.
func divisor(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// points returns the maximum number of points of a series.
func (g *Grid) points() int64 {
	if g.first > g.last {
		return 0
	}
	return (g.last-g.first)/g.step + 1
}

func (g *Grid) unitLength() time.Duration { return time.Duration(g.unit) * time.Minute }

// times returns the range of start times of the calls that the points describe, both ends
// inclusive. There must be at least one point.
func (g *Grid) times() (from, to time.Time) {
	return time.Unix(max(g.first-g.window, 0)*g.unit*60, 0), time.Unix(g.last*g.unit*60, -1)
}

// unitOf returns the unit that begins at a point of a store.
func (g *Grid) unitOf(p *tracestore.MetricPoint) int64 {
	return int64(p.Start / uint64(g.unitLength()))
}

// beginSeries returns the first point of a series, which is the first point after a call. Before
// it, an absence of calls may mean that the spans were not stored; afterwards, it means that
// nothing was called.
func (g *Grid) beginSeries(s *tracestore.MetricSeries) int64 {
	if len(s.Points) == 0 {
		return g.last + 1
	}
	offset := g.unitOf(&s.Points[0]) - g.first
	if offset < 0 {
		return g.first
	}
	return g.first + (offset/g.step+1)*g.step
}

// pointsOf returns the number of points of a series.
func (g *Grid) pointsOf(s *tracestore.MetricSeries) int64 {
	rest := *g
	rest.first = g.beginSeries(s)
	return rest.points()
}
