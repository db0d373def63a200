package storequery

import "github.com/tracing-backend/tracing/pipeline/tracestore"

// DurationCounter counts calls: a [MetricsCounter] or a [BaselineCounter]. Its series are the
// series of the result.
type DurationCounter interface {
	// Wants reports whether spans of a service and a kind may be selected.
	Wants(service, kind string) bool
	// WantsOperation reports whether spans of an operation may be selected.
	WantsOperation(service, operation, kind string) bool
	// Series returns the index of an operation's series, for AddSpan and AddHistogram. It does not
	// retain the strings. ok is false if spans of the operation are not counted.
	Series(service, operation, kind string) (series int, ok bool)
	// AddSpan counts one span that stands for count calls; see otlpdata.Span.AdjustedCount. start
	// is in nanoseconds since the Unix epoch, duration in nanoseconds.
	AddSpan(series int, start, duration, count uint64, failed bool)
	// AddHistogram counts calls that start within the same minute as start.
	AddHistogram(series int, start uint64, durations *tracestore.Histogram, failed bool)
}

// BaselineCounter counts the durations of the operations of a query. Not safe for concurrent use.
type BaselineCounter struct {
	index     map[tracestore.OperationKey]int
	some      map[serviceKind]struct{}
	durations []tracestore.Histogram
}

type serviceKind struct{ service, kind string }

// NewBaselineCounter returns a BaselineCounter for the operations of a query. The caller must check
// the window.
func NewBaselineCounter(q tracestore.BaselineQuery) *BaselineCounter {
	c := &BaselineCounter{index: make(map[tracestore.OperationKey]int, len(q.Operations)), some: make(map[serviceKind]struct{}),
		durations: make([]tracestore.Histogram, len(q.Operations))}
	for i, o := range q.Operations {
		c.index[o] = i
		c.some[serviceKind{o.Service, o.Kind}] = struct{}{}
	}
	return c
}

// Wants implements DurationCounter.
func (c *BaselineCounter) Wants(service, kind string) bool {
	_, ok := c.some[serviceKind{service, kind}]
	return ok
}

// WantsOperation implements DurationCounter.
func (c *BaselineCounter) WantsOperation(service, operation, kind string) bool {
	_, ok := c.Series(service, operation, kind)
	return ok
}

// Series implements DurationCounter.
func (c *BaselineCounter) Series(service, operation, kind string) (series int, ok bool) {
	series, ok = c.index[tracestore.OperationKey{Service: service, Operation: operation, Kind: kind}]
	return series, ok
}

// AddSpan implements DurationCounter.
func (c *BaselineCounter) AddSpan(series int, _, duration, count uint64, _ bool) {
	c.durations[series].ObserveN(duration, count)
}

// AddHistogram implements DurationCounter.
func (c *BaselineCounter) AddHistogram(series int, _ uint64, durations *tracestore.Histogram, _ bool) {
	c.durations[series].Add(durations)
}

// Answer returns the counts. The counter must not be used afterwards.
func (c *BaselineCounter) Answer() tracestore.BaselineAnswer {
	return tracestore.BaselineAnswer{Durations: c.durations}
}
