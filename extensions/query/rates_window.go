package query

import (
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

const (
	// maxRateSteps bounds the points of one series: more than the minutes of a week.
	maxRateSteps = 11_000
	// settling is how long after a minute its calls are told. Before, those whose spans are on the way would show as a dip.
	settling = 10 * time.Second
	// minutesPerHour is the longest unit of a rateGrid.
	minutesPerHour = 60
)

// rateGrid is the times that points are at. A point is about the time before it: the calls that start from window before it on. All that
// is asked of a store is whole units, and every unit is over, so that no point lacks calls because its time is not.
type rateGrid struct {
	unit         int64 // minutes: the longest of which step and window are multiples, at most an hour
	first, last  int64 // points, in units since the Unix epoch; there is none where first is above last
	step, window int64 // in units
}

// newRateGrid returns the points of a question. Steps and windows are rounded up to minutes.
func newRateGrid(q *rateQuestion, now time.Time) (rateGrid, error) {
	step, window := minutesOf(q.step), minutesOf(q.per)
	unit := divisor(divisor(step, window), minutesPerHour)
	g := rateGrid{unit: unit, first: 1, step: step / unit, window: window / unit}
	begin, end := max(max(q.end.Unix(), 0)-int64(q.lookback/time.Second), 0), min(q.end.Unix(), now.Add(-settling).Unix())
	if end < begin {
		return g, nil
	}
	length := unit * 60
	g.last = end / length
	if g.last*length < begin {
		return g, nil
	}
	steps := (g.last*length - begin) / (step * 60)
	if steps >= maxRateSteps {
		return g, fmt.Errorf("lookback has %d steps of %d minutes, which is more than %d", steps+1, step, maxRateSteps)
	}
	g.first = g.last - steps*g.step
	return g, nil
}

// minutesOf rounds up to whole minutes, of which it is at least one.
func minutesOf(d time.Duration) int64 { return int64((max(d, 1)-1)/time.Minute) + 1 }

// divisor returns the greatest common divisor.
func divisor(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// points returns how many points a series has at most.
func (g *rateGrid) points() int64 {
	if g.first > g.last {
		return 0
	}
	return (g.last-g.first)/g.step + 1
}

// length returns how long a unit is.
func (g *rateGrid) length() time.Duration { return time.Duration(g.unit) * time.Minute }

// times returns the bounds on starts of the calls that points are about, both inclusive. There must be points.
func (g *rateGrid) times() (from, to time.Time) {
	return time.Unix(max(g.first-g.window, 0)*g.unit*60, 0), time.Unix(g.last*g.unit*60, -1)
}

// unitOf returns the unit that a point of a store begins.
func (g *rateGrid) unitOf(p *tracestore.MetricPoint) int64 {
	return int64(p.Start / uint64(g.length()))
}

// begin returns the first point of a series: the first one behind a call. Whether nothing was called before that, or nothing was kept of
// it, nobody knows; later on, no calls is a fact.
func (g *rateGrid) begin(s *tracestore.MetricSeries) int64 {
	if len(s.Points) == 0 {
		return g.last + 1
	}
	before := g.unitOf(&s.Points[0]) - g.first // how far behind the first point of all
	if before < 0 {
		return g.first
	}
	return g.first + (before/g.step+1)*g.step
}

func (g *rateGrid) pointsOf(s *tracestore.MetricSeries) int64 {
	rest := *g
	rest.first = g.begin(s)
	return rest.points()
}

// all returns the points of a series, in order: Unix time in seconds, and value.
func (a *rateAnswer) all(s *tracestore.MetricSeries) iter.Seq2[int64, float64] {
	return func(yield func(int64, float64) bool) {
		g := &a.grid
		w := rateWindow{seconds: float64(g.window) * g.length().Seconds()}
		come, gone := 0, 0
		for at := g.begin(s); at <= g.last; at += g.step {
			for ; come < len(s.Points) && g.unitOf(&s.Points[come]) < at; come++ {
				w.add(&s.Points[come])
			}
			for ; gone < come && g.unitOf(&s.Points[gone]) < at-g.window; gone++ {
				w.remove(&s.Points[gone])
			}
			if !yield(at*g.unit*60, a.value(&w)) {
				return
			}
		}
	}
}

// rateWindow is the calls that a point is about. It slides: each unit is added once and removed once, however long the window is.
type rateWindow struct {
	seconds       float64
	calls, errors uint64
	durations     [tracestore.Buckets]uint64
	scratch       tracestore.Histogram
}

func (w *rateWindow) add(p *tracestore.MetricPoint) {
	w.calls += p.Calls
	w.errors += p.Errors
	first, counts := p.Durations.Counts()
	for i, n := range counts {
		w.durations[first+i] += n
	}
}

func (w *rateWindow) remove(p *tracestore.MetricPoint) {
	w.calls -= p.Calls
	w.errors -= p.Errors
	first, counts := p.Durations.Counts()
	for i, n := range counts {
		w.durations[first+i] -= n
	}
}

// callRate returns calls per second.
func (w *rateWindow) callRate() float64 { return float64(w.calls) / w.seconds }

// errorRate returns the share of calls that failed; of no calls it is not a number.
func (w *rateWindow) errorRate() float64 {
	if w.calls == 0 {
		return math.NaN()
	}
	return float64(w.errors) / float64(w.calls)
}

// milliseconds returns a quantile of durations; of no calls it is not a number.
func (w *rateWindow) milliseconds(quantile float64) float64 {
	if w.calls == 0 {
		return math.NaN()
	}
	w.scratch.Reset()
	for bucket, n := range w.durations {
		if n > 0 {
			w.scratch.AddBucket(bucket, n)
		}
	}
	return w.scratch.Quantile(quantile) / float64(time.Millisecond)
}
