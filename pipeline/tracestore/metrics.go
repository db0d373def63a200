package tracestore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Metrics is implemented by stores that know how often services are called, how often that fails, and how long it takes.
//
// A call is what a span records, of any kind. It belongs to the start of the span. A span that was sampled with a threshold in its
// tracestate stands for several calls, all with its start, status and duration: so many as otlpdata.Span.AdjustedCount says. Nothing else
// that a store counts is adjusted. A store counts duplicates once; those that came in different requests it may count once for each place
// where it has stored them.
type Metrics interface {
	// Metrics returns the calls that q asks for. An error says that they cannot be counted at all; what could be counted is returned
	// where MetricsAnswer.Complete is false.
	Metrics(ctx context.Context, tenant string, q MetricsQuery) (MetricsAnswer, error)
}

// MetricsQuery says which calls are counted, and which of them together.
type MetricsQuery struct {
	Services    []string // as otlpdata.ServiceName mends them; none: all
	Kinds       []string // as otlpdata.Span.KindName has them; none: all
	ByOperation bool     // a series for each operation of a service; otherwise one for each service
	// From and To bound the starts of spans as those of Query do, both inclusive. The first and the last point of a series lack what is
	// outside of them.
	From, To time.Time
	// Step is how long points are; see StepLength. Points begin at its multiples since the Unix epoch, so that a call is in the same point
	// wherever the window begins.
	Step time.Duration
}

// StepLength returns Step in nanoseconds, rounded up to whole minutes, of which it is at least one.
func (q *MetricsQuery) StepLength() uint64 {
	const minute = uint64(time.Minute)
	return (uint64(max(q.Step, 1)) + minute - 1) / minute * minute
}

// Window returns the bounds on starts, see Query.Window.
func (q *MetricsQuery) Window() (from, to uint64, ok bool) {
	return Query{From: q.From, To: q.To}.Window()
}

// MetricsAnswer is how often services were called.
type MetricsAnswer struct {
	// Series are sorted by service and operation. None is without points.
	Series []MetricSeries
	// Step is the length of a point in nanoseconds.
	Step uint64
	// Complete: every call that was asked for is counted. Otherwise Reason says in the user's words what is missing.
	Complete bool
	Reason   string
}

// MetricSeries is the calls of a service or of one of its operations.
type MetricSeries struct {
	Service   string
	Operation string        // as otlpdata.Span.Operation has it, or OtherOperation; "" unless MetricsQuery.ByOperation
	Points    []MetricPoint // by Start. None is without calls
}

// MetricPoint is the calls that start within a step.
type MetricPoint struct {
	Start         uint64    // of the step, nanoseconds since the Unix epoch
	Calls, Errors uint64    // adjusted counts; Errors are those calls whose span has the status error
	Durations     Histogram // of all calls: its Count is Calls
}

const (
	// MaxOperations is how many operations of a service have series of their own. A store may count which they are for each place where
	// it has stored spans, so that an answer has the first ones that it meets. Further ones are OtherOperation.
	MaxOperations = 2000
	// OtherOperation stands for the operations beyond MaxOperations.
	OtherOperation = "other"
	// MaxMetricPoints bounds the points of an answer. Calls that belong to further ones are missing, and Complete is false. At most
	// 5 KiB each, and usually some hundred bytes.
	MaxMetricPoints = 1 << 17
)

// MetricsCounter adds up the calls that a query asks for. Not for concurrent use.
type MetricsCounter struct {
	byOperation     bool
	step            uint64
	services, kinds map[string]struct{} // nil: all
	index           map[seriesName]int
	operations      map[string]int // by service: how many have series
	series          []countedSeries
	points          int
	most            int  // series, and points
	full            bool // something had no room
}

type seriesName struct{ service, operation string }

type countedSeries struct {
	seriesName
	points map[uint64]*MetricPoint // by Start
	last   *MetricPoint            // the one that was counted last: usually the next one, too
}

// NewMetricsCounter returns a MetricsCounter for the services, kinds and steps of a query. The window is left to the caller.
func NewMetricsCounter(q MetricsQuery) *MetricsCounter {
	return &MetricsCounter{byOperation: q.ByOperation, step: q.StepLength(), services: setOf(q.Services), kinds: setOf(q.Kinds),
		index: make(map[seriesName]int), operations: make(map[string]int), most: MaxMetricPoints}
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

// Wants reports whether spans of a service and a kind are asked for.
func (c *MetricsCounter) Wants(service, kind string) bool {
	return isIn(c.services, service) && isIn(c.kinds, kind)
}

func isIn(set map[string]struct{}, s string) bool {
	_, ok := set[s]
	return ok || set == nil
}

// Series returns the number of the series of an operation, for Span and Add. It does not keep the strings. It is false where there is no
// room for more series.
func (c *MetricsCounter) Series(service, operation string) (series int, ok bool) {
	name := seriesName{service, operation}
	if !c.byOperation {
		name.operation = ""
	}
	if i, ok := c.index[name]; ok {
		return i, true
	}
	if c.byOperation && operation != OtherOperation {
		if c.operations[service] >= MaxOperations {
			return c.Series(service, OtherOperation)
		}
	}
	if len(c.series) >= c.most {
		c.full = true
		return 0, false
	}
	name = seriesName{strings.Clone(service), strings.Clone(name.operation)}
	c.index[name] = len(c.series)
	c.operations[name.service]++
	c.series = append(c.series, countedSeries{seriesName: name, points: make(map[uint64]*MetricPoint)})
	return len(c.series) - 1, true
}

// Span counts one span, which stands for so many calls as count says, see otlpdata.Span.AdjustedCount. start is in nanoseconds since the
// Unix epoch, duration in nanoseconds.
func (c *MetricsCounter) Span(series int, start, duration, count uint64, failed bool) {
	p := c.point(series, start)
	if p == nil {
		return
	}
	p.Calls += count
	if failed {
		p.Errors += count
	}
	p.Durations.ObserveTimes(duration, count)
}

// Add counts calls that start within one minute, at one time of which start is.
func (c *MetricsCounter) Add(series int, start uint64, durations *Histogram, failed bool) {
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

// point returns the point of a series that a start belongs to, or nil where there is no room for it.
func (c *MetricsCounter) point(series int, start uint64) *MetricPoint {
	s := &c.series[series]
	if s.last != nil && start >= s.last.Start && start-s.last.Start < c.step {
		return s.last
	}
	start -= start % c.step
	p := s.points[start]
	if p == nil {
		if c.points >= c.most {
			c.full = true
			return nil
		}
		c.points++
		p = &MetricPoint{Start: start}
		s.points[start] = p
	}
	s.last = p
	return p
}

// Answer returns what was counted. It is Complete unless there was no room for all. The counter must not be used any more.
func (c *MetricsCounter) Answer() MetricsAnswer {
	a := MetricsAnswer{Step: c.step, Complete: !c.full}
	if c.full {
		a.Reason = fmt.Sprintf("only %d points fit into an answer; narrow the time range, or ask for longer steps or fewer services",
			c.most)
	}
	for i := range c.series {
		s := &c.series[i]
		if len(s.points) == 0 {
			continue
		}
		out := MetricSeries{Service: s.service, Operation: s.operation, Points: make([]MetricPoint, 0, len(s.points))}
		for _, p := range s.points {
			out.Points = append(out.Points, *p)
		}
		slices.SortFunc(out.Points, func(a, b MetricPoint) int { return cmp.Compare(a.Start, b.Start) })
		a.Series = append(a.Series, out)
	}
	slices.SortFunc(a.Series, func(a, b MetricSeries) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Operation, b.Operation))
	})
	return a
}
