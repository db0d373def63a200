package storequery

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// MaxMetricPoints is the maximum number of points in a result. Calls that belong to further points
// are not counted, and the result is incomplete. A point usually takes one or two KiB, at most 17
// KiB.
const MaxMetricPoints = 1 << 17

// MetricsCounter counts the calls that a query selects. Not safe for concurrent use.
type MetricsCounter struct {
	byOperation     bool
	step            uint64
	services, kinds map[string]struct{} // nil: all
	index           map[seriesName]int
	operations      map[string]int // by service: number of series
	series          []countedSeries
	points          int
	limit           int  // maximum number of series, and of points
	full            bool // something was not counted because of the limit
}

type seriesName struct{ service, operation string }

type countedSeries struct {
	seriesName
	points map[uint64]*tracestore.MetricPoint // by Start
	last   *tracestore.MetricPoint            // the point of the previous call, usually also of the next
}

// NewMetricsCounter returns a MetricsCounter for the services, kinds and steps of a query. The
// caller must check the window.
func NewMetricsCounter(q tracestore.MetricsQuery) *MetricsCounter {
	return &MetricsCounter{byOperation: q.ByOperation, step: q.StepLength(), services: setOf(q.Services), kinds: setOf(q.Kinds),
		index: make(map[seriesName]int), operations: make(map[string]int), limit: MaxMetricPoints}
}

func setOf(list []string) map[string]struct{} {
	if len(list) == 0 {
		return nil
	}
	set := make(map[string]struct{}, len(list))
	for _, s := range list {
		set[s] = struct{}{}
	}
	return set
}

// Wants reports whether the query selects spans of a service and a kind.
func (c *MetricsCounter) Wants(service, kind string) bool {
	return isIn(c.services, service) && isIn(c.kinds, kind)
}

func isIn(set map[string]struct{}, s string) bool {
	_, ok := set[s]
	return ok || set == nil
}

// WantsOperation always returns true: a query for metrics does not select single operations.
func (c *MetricsCounter) WantsOperation(service, _, kind string) bool { return c.Wants(service, kind) }

// Series implements DurationCounter. ok is false if the maximum number of series is reached.
func (c *MetricsCounter) Series(service, operation, kind string) (series int, ok bool) {
	name := seriesName{service, operation}
	if !c.byOperation {
		name.operation = ""
	}
	if i, ok := c.index[name]; ok {
		return i, true
	}
	if c.byOperation && operation != tracestore.OtherOperation {
		if c.operations[service] >= tracestore.MaxOperations {
			return c.Series(service, tracestore.OtherOperation, kind)
		}
	}
	if len(c.series) >= c.limit {
		c.full = true
		return 0, false
	}
	name = seriesName{strings.Clone(service), strings.Clone(name.operation)}
	c.index[name] = len(c.series)
	c.operations[name.service]++
	c.series = append(c.series, countedSeries{seriesName: name, points: make(map[uint64]*tracestore.MetricPoint)})
	return len(c.series) - 1, true
}

// AddSpan counts one span that stands for count calls; see otlpdata.Span.AdjustedCount. start is in
// nanoseconds since the Unix epoch, duration in nanoseconds.
func (c *MetricsCounter) AddSpan(series int, start, duration, count uint64, failed bool) {
	p := c.point(series, start)
	if p == nil {
		return
	}
	p.Calls += count
	if failed {
		p.Errors += count
	}
	p.Durations.ObserveN(duration, count)
}

// AddHistogram counts calls that start within the same minute as start.
func (c *MetricsCounter) AddHistogram(series int, start uint64, durations *tracestore.Histogram, failed bool) {
	p := c.point(series, start)
	if p == nil {
		return
	}
	n := durations.Count()
	p.Calls += n
	if failed {
		p.Errors += n
	}
	p.Durations.Add(durations)
}

// AddPoint adds the calls of a point, for example from another result with the same steps. It
// retains nothing of p.
func (c *MetricsCounter) AddPoint(series int, p *tracestore.MetricPoint) {
	sum := c.point(series, p.Start)
	if sum == nil {
		return
	}
	sum.Calls += p.Calls
	sum.Errors += p.Errors
	sum.Durations.Add(&p.Durations)
}

// point returns the point of a series to which a start belongs, or nil if the maximum number of
// points is reached.
func (c *MetricsCounter) point(series int, start uint64) *tracestore.MetricPoint {
	s := &c.series[series]
	if s.last != nil && start >= s.last.Start && start-s.last.Start < c.step {
		return s.last
	}
	start -= start % c.step
	p := s.points[start]
	if p == nil {
		if c.points >= c.limit {
			c.full = true
			return nil
		}
		c.points++
		p = &tracestore.MetricPoint{Start: start}
		s.points[start] = p
	}
	s.last = p
	return p
}

// Answer returns the counts. It is complete unless a limit was reached. The counter must not be
// used afterwards.
func (c *MetricsCounter) Answer() tracestore.MetricsAnswer {
	a := tracestore.MetricsAnswer{Step: c.step}
	if c.full {
		a.Reasons = tracestore.Because(tracestore.ReasonLimit, fmt.Sprintf(
			"a response has at most %d points; narrow the time range, or use a longer step or fewer services", c.limit))
	}
	for i := range c.series {
		s := &c.series[i]
		if len(s.points) == 0 {
			continue
		}
		out := tracestore.MetricSeries{Service: s.service, Operation: s.operation, Points: make([]tracestore.MetricPoint, 0, len(s.points))}
		for _, p := range s.points {
			out.Points = append(out.Points, *p)
		}
		slices.SortFunc(out.Points, func(a, b tracestore.MetricPoint) int { return cmp.Compare(a.Start, b.Start) })
		a.Series = append(a.Series, out)
	}
	slices.SortFunc(a.Series, func(a, b tracestore.MetricSeries) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Operation, b.Operation))
	})
	return a
}
