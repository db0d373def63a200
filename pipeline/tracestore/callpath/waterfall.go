package callpath

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/tracestore"
)

// Waterfall merges traces into one tree: for each call path, how long its calls take, and when they
// start in their traces. The zero value is ready to use and has no memory limit. A Waterfall is not
// safe for concurrent use.
type Waterfall struct {
	counter Counter
	runs    []runs // by path of the counter
}

// runs are the calls of a path, in nanoseconds. Starts are relative to the first span of a trace.
type runs struct {
	starts, durations []uint64
	slowest, failed   Example
}

// runMemory is the size in bytes of a call in lists that grow by doubling.
const runMemory = 32

// PathTimes describes the calls of a call path, in nanoseconds.
type PathTimes struct {
	// Start is the median of the start, relative to the first span of the trace.
	Start    uint64
	P50, P95 uint64 // of the duration
	// Time is the sum of the durations.
	Time float64
	// Slowest is the longest call, and Failed the longest call with the status error.
	Slowest, Failed Example
}

// Example is a span of a trace. A zero trace id means that there is no example.
type Example struct {
	Trace    otlpdata.TraceID
	Span     otlpdata.SpanID
	Duration uint64
}

// ChargeTo makes the waterfall reserve its memory in m.
func (w *Waterfall) ChargeTo(m *tracestore.Memory) { w.counter.ChargeTo(m) }

// AddTrace adds a trace. The spans are as for Tree.Build. If it returns an error, as
// tracestore.Reserve does, the trace is not added.
func (w *Waterfall) AddTrace(t *Tree, id otlpdata.TraceID) error {
	if err := w.counter.memory.Grow(int64(len(t.spans)) * runMemory); err != nil {
		return err
	}
	w.counter.AddTrace(t, id, true)
	w.runs = append(w.runs, make([]runs, len(w.counter.paths)-len(w.runs))...)
	for i := range t.spans {
		if p := w.counter.pathOf[i]; p >= 0 {
			w.runs[p].add(t.start[i]-t.start[0], &t.spans[i], id)
		}
	}
	return nil
}

func (r *runs) add(start uint64, s *tracestore.SummarySpan, id otlpdata.TraceID) {
	r.starts, r.durations = append(r.starts, start), append(r.durations, s.Duration)
	r.slowest.replace(id, s)
	if s.Failed {
		r.failed.replace(id, s)
	}
}

// replace makes a longer span the example. Of spans with the same duration it keeps the one with
// the lowest ids, so that the order of the traces does not matter.
func (e *Example) replace(id otlpdata.TraceID, s *tracestore.SummarySpan) {
	order := cmp.Or(cmp.Compare(e.Duration, s.Duration), bytes.Compare(id[:], e.Trace[:]), bytes.Compare(s.ID[:], e.Span[:]))
	if e.Trace.IsZero() || order < 0 {
		*e = Example{Trace: id, Span: s.ID, Duration: s.Duration}
	}
}

// Answer returns a profile whose selected set has the counts of all traces, and the times of each
// of its call paths.
func (w *Waterfall) Answer() (tracestore.PathProfile, []PathTimes) {
	profile, order := w.counter.answer()
	times := make([]PathTimes, len(order))
	for i, at := range order {
		times[i] = w.runs[at].times()
	}
	return profile, times
}

func (r *runs) times() PathTimes {
	slices.Sort(r.starts)
	slices.Sort(r.durations)
	out := PathTimes{Start: quantile(r.starts, 0.5), P50: quantile(r.durations, 0.5), P95: quantile(r.durations, 0.95),
		Slowest: r.slowest, Failed: r.failed}
	for _, d := range r.durations {
		out.Time += float64(d)
	}
	return out
}

// quantile returns the smallest value that a share of sorted values does not exceed.
func quantile(sorted []uint64, share float64) uint64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max(int(math.Ceil(share*float64(len(sorted)))), 1)-1]
}
