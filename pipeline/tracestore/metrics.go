package tracestore

import (
	"context"
	"time"
)

// Metrics is implemented by stores that count calls, errors and durations of services.
//
// Each span is a call, whatever its kind. The start of the span is the time of the call. A span
// that was sampled with a threshold in its tracestate counts as otlpdata.Span.AdjustedCount calls
// with the same start, status and duration. Other counts of a store are not adjusted for sampling.
// A store counts duplicates once, but duplicates that arrived in different requests may count once
// for each place where they are stored.
type Metrics interface {
	// Metrics returns the calls that q selects. It returns an error if calls cannot be counted at
	// all. If only some can be counted, it returns these and the result is incomplete.
	Metrics(ctx context.Context, tenant string, q MetricsQuery) (MetricsAnswer, error)
	// Baselines returns the durations of the calls of single operations, so that a span can be
	// compared with the usual durations. Errors are the same as for Metrics.
	Baselines(ctx context.Context, tenant string, q BaselineQuery) (BaselineAnswer, error)
}

// MetricsQuery selects calls and how they are grouped.
type MetricsQuery struct {
	Services    []string // as corrected by otlpdata.ServiceName; empty: all
	Kinds       []string // as returned by otlpdata.Span.KindName; empty: all
	ByOperation bool     // one series for each operation of a service; otherwise one for each service
	// From and To limit the start of spans as in Query, both inclusive. The first and the last
	// point of a series do not include calls outside this window.
	From, To time.Time
	// Step is the interval between points; see StepLength. Points begin at multiples of Step since
	// the Unix epoch, so that a call belongs to the same point in every window.
	Step time.Duration
}

// StepLength returns Step in nanoseconds, rounded up to whole minutes. The minimum is one minute.
func (q *MetricsQuery) StepLength() uint64 {
	const minute = uint64(time.Minute)
	return (uint64(max(q.Step, 1)) + minute - 1) / minute * minute
}

// Window returns the bounds of start times, as Query.Window does.
func (q *MetricsQuery) Window() (from, to uint64, ok bool) {
	return Query{From: q.From, To: q.To}.Window()
}

// MetricsAnswer is the result of Metrics.
type MetricsAnswer struct {
	// Series are sorted by service and operation. Each has at least one point.
	Series []MetricSeries
	// Step is the length of a point in nanoseconds.
	Step uint64
	// Reasons says why some selected calls are not counted.
	Reasons
}

// MetricSeries holds the calls of a service or of one of its operations.
type MetricSeries struct {
	Service string
	// Operation is "" unless MetricsQuery.ByOperation is set. It is as returned by
	// otlpdata.Span.Operation, or OtherOperation.
	Operation string
	Points    []MetricPoint // sorted by Start; each has at least one call
}

// MetricPoint holds the calls that start within one step.
type MetricPoint struct {
	Start         uint64    // of the step, nanoseconds since the Unix epoch
	Calls, Errors uint64    // adjusted counts; Errors counts the calls whose span has the status error
	Durations     Histogram // of all calls; its Count equals Calls
}

const (
	// MaxOperations is the maximum number of operations of a service that have their own series. A
	// result contains the operations that the store reads first; all others are counted as
	// OtherOperation. The selection may differ between the places where a store holds spans.
	MaxOperations = 2000
	// OtherOperation is the name of the series for the operations beyond MaxOperations.
	OtherOperation = "other"
)
