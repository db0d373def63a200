package spanmetrics

import (
	"math"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// ServiceSeries describes the requests of a service, of all services, or of an operation.
type ServiceSeries struct {
	Name    string
	Calls   []uint64  // for each step
	Errors  []uint64  // for each step
	P50     []float64 // nanoseconds for each step; NaN where there are no calls
	P95     []float64
	P99     []float64
	Time    uint64 // sum of the durations in nanoseconds, or the maximum uint64 if it overflows
	Summary Red
	Usual   *Red // of the time before; nil if there were no calls
}

// Red is the number, errors and durations of calls.
type Red struct {
	Calls, Errors uint64
	P50, P95, P99 float64 // nanoseconds; NaN if there are no calls
}

// counts is calls in some time.
type counts struct {
	calls, errors uint64
	durations     tracestore.Histogram
}

func (c *counts) addPoint(p *tracestore.MetricPoint) {
	c.calls += p.Calls
	c.errors += p.Errors
	c.durations.Add(&p.Durations)
}

func (c *counts) red() Red {
	r := Red{c.calls, c.errors, math.NaN(), math.NaN(), math.NaN()}
	if c.calls > 0 {
		r.P50, r.P95, r.P99 = c.durations.Quantile(0.5), c.durations.Quantile(0.95), c.durations.Quantile(0.99)
	}
	return r
}

// tally adds up the calls of both periods.
type tally struct {
	periods *Periods
	steps   []counts
	usual   counts
}

func newTally(p *Periods) *tally { return &tally{periods: p, steps: make([]counts, p.Points)} }

func (t *tally) addPair(p *pair) {
	start, step := uint64(t.periods.Start.UnixNano()), uint64(t.periods.Step)
	for i := range p.now {
		if at := (p.now[i].Start - start) / step; at < uint64(len(t.steps)) {
			t.steps[at].addPoint(&p.now[i])
		}
	}
	for i := range p.usual {
		t.usual.addPoint(&p.usual[i])
	}
}

// series returns the sums.
func (t *tally) series(name string) ServiceSeries {
	n := len(t.steps)
	s := ServiceSeries{Name: name, Calls: make([]uint64, n), Errors: make([]uint64, n),
		P50: make([]float64, n), P95: make([]float64, n), P99: make([]float64, n)}
	var all counts
	for i := range t.steps {
		step := &t.steps[i]
		r := step.red()
		s.Calls[i], s.Errors[i], s.P50[i], s.P95[i], s.P99[i] = r.Calls, r.Errors, r.P50, r.P95, r.P99
		all.calls += step.calls
		all.errors += step.errors
		all.durations.Add(&step.durations)
	}
	s.Summary, s.Time = all.red(), all.durations.Sum
	if t.usual.calls > 0 {
		r := t.usual.red()
		s.Usual = &r
	}
	return s
}
