package tracestore

import (
	"context"
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
)
