package spanmetrics

import (
	"math"
	"time"

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
	Usual   *Usual // nil if too little is known
	// Incident is the ongoing incident or else the latest one that has not ended before the range;
	// it may be nil. Earlier holds the other incidents that have not ended before the range, the
	// latest first.
	Incident *Incident
	Earlier  []Incident
	// Since holds the calls since the start of an ongoing incident, or is nil. For an operation,
	// this is the incident of its service; for a sum of services, the earliest of their incidents.
	Since *Since
	// AllSpans reports whether a service has no requests, so that all its spans count.
	AllSpans bool

	history *history
}

// Since is the calls since some time.
type Since struct {
	Start time.Time
	Red
}

// Red holds the number, errors and durations of calls.
type Red struct {
	Calls, Errors uint64
	P50, P95, P99 float64 // nanoseconds; NaN if there are no calls
}

func (r *Red) errorShare() float64 { return float64(r.Errors) / float64(max(r.Calls, 1)) }

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

func (c *counts) add(o *counts) {
	c.calls += o.calls
	c.errors += o.errors
	c.durations.Add(&o.durations)
}

func (c *counts) red() Red {
	r := Red{c.calls, c.errors, math.NaN(), math.NaN(), math.NaN()}
	if c.calls > 0 {
		r.P50, r.P95, r.P99 = c.durations.Quantile(0.5), c.durations.Quantile(0.95), c.durations.Quantile(0.99)
	}
	return r
}

// tally adds up the calls of the range, and the calls from which usual values are learned.
type tally struct {
	periods *Periods
	steps   []counts
	slots   []counts
}

func newTally(p *Periods) *tally {
	return &tally{periods: p, steps: make([]counts, p.Points), slots: make([]counts, p.slots())}
}

func (t *tally) addPair(p *pair) {
	addPoints(t.steps, p.now, t.periods.Start, t.periods.Step)
	addPoints(t.slots, p.learned, t.periods.UsualStart, slot)
}

// addPoints adds points to steps.
func addPoints(steps []counts, points []tracestore.MetricPoint, start time.Time, step time.Duration) {
	for i := range points {
		if at := (points[i].Start - uint64(start.UnixNano())) / uint64(step); at < uint64(len(steps)) {
			steps[at].addPoint(&points[i])
		}
	}
}

// series returns the sums, and the conclusions about the service.
func (t *tally) series(name string) ServiceSeries {
	n := len(t.steps)
	s := ServiceSeries{Name: name, Calls: make([]uint64, n), Errors: make([]uint64, n),
		P50: make([]float64, n), P95: make([]float64, n), P99: make([]float64, n)}
	var all counts
	for i := range t.steps {
		step := &t.steps[i]
		r := step.red()
		s.Calls[i], s.Errors[i], s.P50[i], s.P95[i], s.P99[i] = r.Calls, r.Errors, r.P50, r.P95, r.P99
		all.add(step)
	}
	s.Summary, s.Time = all.red(), all.durations.Sum
	s.history = learn(t.slots, slotsPerDay, t.periods.usualEnd().Sub(t.periods.slotTime(len(t.slots)-1)))
	s.Usual = s.history.usual
	s.history.quiet = nil // it keeps all slots in memory
	first := int(t.periods.Start.Sub(t.periods.UsualStart) / slot)
	first = max(0, min(first, len(t.slots)-slotsPerDay))
	s.judge(&series{t.periods.slotTime(first), slot, t.slots[first:]}, t.periods)
	return s
}

// judge finds the incidents of a service. Incidents from before the counted time stay unchanged.
func (s *ServiceSeries) judge(counted *series, p *Periods) {
	found := s.history.incidents(counted, p)
	for _, i := range s.Incidents() {
		if i.Start.Before(counted.start) {
			found = append(found, i)
		}
	}
	s.Incident, s.Earlier = nil, nil
	if found = apart(found); len(found) > 0 {
		s.Incident, s.Earlier = &found[0], found[1:]
	}
	if i := s.Incident; i != nil && i.End.IsZero() && s.Summary.Calls == 0 && s.Usual.callsIn(p.End.Sub(p.Start)) >= minMissing {
		s.Incident, s.Earlier = nil, nil // it no longer fails because it is not called
	}
	known := s.Usual != nil && s.Usual.errorShare() < alwaysFailing
	if r := s.latest(counted); s.Incident == nil && !known && r.Errors >= minBad && r.errorShare() >= alwaysFailing {
		s.Incident, s.Usual = &Incident{Kind: Errors, Red: r}, nil // such a share is never usual
	}
	s.Since = nil
	if i := s.Incident; i != nil && i.End.IsZero() && !i.Start.IsZero() {
		s.Since = &Since{i.Start, i.Red}
	}
}

// latest returns the calls of the range, or of the last two slots if the range is shorter.
func (s *ServiceSeries) latest(counted *series) Red {
	n := min(int(2*slot/counted.length), len(counted.counts))
	last := sum(chosen(counted.counts[len(counted.counts)-n:], func(*counts) bool { return true }))
	if last.calls > s.Summary.Calls {
		return last.red()
	}
	return s.Summary
}

// Incidents returns Incident, if there is one, and Earlier.
func (s *ServiceSeries) Incidents() []Incident {
	if s.Incident == nil {
		return s.Earlier
	}
	return append([]Incident{*s.Incident}, s.Earlier...)
}
