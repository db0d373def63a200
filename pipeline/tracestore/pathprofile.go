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
	// At most o.Traces traces of each set are examined. If there are more, the examined traces are
	// a sample that is spread over the window. Budget.Spans limits, for each set, the number of
	// spans that are examined to find traces, and Budget.TraceSpans the number of spans of one
	// trace that are used. Repeated calls have the same result if the store has not changed. If
	// several stores are read as one, they share the number of traces, but each may examine at
	// least one trace and as many spans as the budget permits; the counts of a sample may then be
	// weighted.
	//
	// It returns an error if there is no result at all, for example if PathOptions.Check fails or
	// ctx was canceled. If some spans could not be read, or memory or time ran out, the profile is
	// incomplete.
	ProfilePaths(ctx context.Context, q Query, sel Selection, o PathOptions) (PathProfile, error)
}

// Limits of a path profile.
const (
	// MaxPathTraces is the maximum number of traces of each set that are examined.
	MaxPathTraces = 2000
	// MaxCallPaths is the maximum number of call paths, and of operations, in a result.
	MaxCallPaths = 20_000
)

// PathOptions limit a path profile.
type PathOptions struct {
	// Traces is the maximum number of traces of each set to examine, at most MaxPathTraces. 0 means
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

// PathProfile is the result of a PathProfiler.
type PathProfile struct {
	// Paths are the call paths of all examined traces. Parents come before their children; siblings
	// are sorted by service, name and kind.
	Paths []CallPath
	// Operations are the same counts by service and name, sorted by these. They are not the sum of
	// Paths: a trace with several paths to an operation counts only once in Traces and in the
	// squares.
	Operations []OperationProfile
	// Selected and Rest are the two sets of traces.
	Selected, Rest PathSet
	// Scanned is the number of spans that were examined to find traces.
	Scanned int
	// Reasons says why some traces that were found could not be read or counted. A sample without
	// reasons is complete; see PathSet.Share.
	Reasons
}

// PathSet describes the traces of one set.
type PathSet struct {
	// Traces is the number of examined traces, Failed the number of examined traces with a failed
	// span, and Spans the number of spans in the examined traces.
	Traces, Failed, Spans uint64
	// Time is the sum of the lengths of the critical paths in nanoseconds, and TimeSquares the sum
	// of their squares.
	Time        uint64
	TimeSquares float64
	// Share is the examined share of the traces of the set: above 0 and at most 1. It is 1 if all
	// were examined or there are none, and otherwise an estimate.
	Share float64
	// IDs are the examined traces. Traces from about the same time are adjacent, so that they can
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
	Calls, Errors uint64 // spans, and spans with the status error
	// SelfTime is the own time of the spans on the critical path of their trace, in nanoseconds,
	// summed over all traces. It includes gaps.
	SelfTime uint64
	// SelfSquares and CallSquares are the sums, over the traces, of the squares of a trace's
	// SelfTime and Calls. With PathSet.Traces they give the variance.
	SelfSquares, CallSquares float64
}
