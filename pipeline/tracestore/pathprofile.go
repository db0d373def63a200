package tracestore

import (
	"context"
	"fmt"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// PathProfiler is implemented by stores that compare the critical paths and the call paths of two
// sets of traces.
type PathProfiler interface {
	// ProfilePaths describes the traces with a span that matches q, in two sets. A trace is
	// selected if one of these spans also starts within the window of sel and meets sel.Where; all
	// other traces are the rest. q.Where and sel.Where may have fields of the trace. Limit, After
	// and Skip are ignored.
	//
	// Of each set at most o.Traces traces are examined. If there are more, they are a sample that
	// is spread over the window. Budget.Spans limits, for each set, the number of spans that are
	// examined to find traces, and Budget.TraceSpans the number of spans that are used of one
	// trace. The answer is the same for repeated calls if the store has not changed. Several stores
	// that are read as one divide the traces, but may each examine at least one, and as many spans
	// as the budget permits; the counts of a sample may then be weighted.
	//
	// It returns an error if there is no answer at all, for example if PathOptions.Check fails or
	// ctx was cancelled. If something could not be read, or memory or time ran out, the profile
	// is not complete.
	ProfilePaths(ctx context.Context, q Query, sel Selection, o PathOptions) (PathProfile, error)
}

// Limits of a path profile.
const (
	// MaxPathTraces is the maximum number of traces of each set that are examined.
	MaxPathTraces = 2000
	// MaxCallPaths is the maximum number of call paths, and of operations, in an answer.
	MaxCallPaths = 20_000
)

// PathOptions limit a path profile.
type PathOptions struct {
	// Traces is the maximum number of traces of each set to examine, at most MaxPathTraces. 0 is
	// MaxPathTraces.
	Traces int
}

// Check returns an error for users if the options are invalid.
func (o PathOptions) Check() error {
	if o.Traces < 0 || o.Traces > MaxPathTraces {
		return fmt.Errorf("%d traces requested; the number must be between 0 and %d", o.Traces, MaxPathTraces)
	}
	return nil
}

// PathProfile is the answer of a PathProfiler.
type PathProfile struct {
	// Paths are the call paths of all examined traces. Parents come before their children; siblings
	// are sorted by service, name and kind.
	Paths []CallPath
	// Operations are the same counts by service and name, sorted by these. They are not the sum of
	// Paths where that matters: a trace with several paths to an operation counts once in Traces,
	// and in the squares.
	Operations []OperationProfile
	// Selected and Rest are the two sets of traces.
	Selected, Rest PathSet
	// Scanned is the number of spans that were examined to find traces.
	Scanned int
	// Reasons says why not everything that was found could be read and counted. A sample alone is
	// complete; see PathSet.Share.
	Reasons
}

// PathSet describes the traces of one set.
type PathSet struct {
	// Traces is the number of examined traces, Failed the number of those with a failed span, and
	// Spans the number of their spans.
	Traces, Failed, Spans uint64
	// Time is the sum of the lengths of the critical paths in nanoseconds, and TimeSquares the sum
	// of their squares.
	Time        uint64
	TimeSquares float64
	// Share is the examined share of the traces of the set, above 0 and at most 1. It is 1 if all
	// were examined or there are none, and otherwise an estimate.
	Share float64
	// IDs are the examined traces. Those of about the same time follow each other, so that they can
	// be read together.
	IDs []otlpdata.TraceID
}

// CallPath is a sequence of calls: an operation, and the call path of its caller.
type CallPath struct {
	Parent         int    // index in PathProfile.Paths, or -1 for spans without a parent in their trace
	Service, Name  string // as corrected by otlpdata.ServiceName and otlpdata.Span.Operation
	Kind           int32  // as in otlpdata.Span; 0 if it is unknown
	Selected, Rest PathCounts
}

// OperationProfile counts the spans with a service and a name.
type OperationProfile struct {
	Service, Name  string
	Selected, Rest PathCounts
}

// PathCounts counts the spans of one set of traces that have a call path or an operation.
type PathCounts struct {
	Traces        uint64 // traces that have such a span
	Calls, Errors uint64 // spans, and those with the status error
	// SelfTime is the own time of the spans on the critical path of their trace, in nanoseconds:
	// the sum of all traces. It includes gaps.
	SelfTime uint64
	// SelfSquares and CallSquares are the sums over the traces of the square of the SelfTime, and
	// of the Calls, of one trace. With PathSet.Traces they give the variance.
	SelfSquares, CallSquares float64
}
