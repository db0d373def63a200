package main

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tracing-backend/tracing/test/bench"
)

// dataSet is what both programs store.
type dataSet struct {
	requests   iter.Seq[bench.Request]
	spans      int
	trace      string    // id of one trace
	begin, end time.Time // contain all spans
}

// age is the time between the spans and now. Tempo answers queries about the last 15 minutes from
// what it has not stored yet.
const age = time.Hour

func newDataSet(o options) (*dataSet, error) {
	if o.captured != "" {
		return capturedSpans(o.captured)
	}
	const seed, perRequest = 7, 500
	length := time.Duration(bench.New(seed, time.Now()).Traces(o.spans)) * time.Second / bench.TracesPerSecond
	begin := time.Now().Add(-age - length).Truncate(time.Minute)
	data := bench.New(seed, begin)
	id := data.Trace(0)[0].TraceID
	d := &dataSet{requests: data.Requests(o.spans, perRequest), trace: fmt.Sprintf("%x", id[:]),
		begin: begin, end: begin.Add(length).Truncate(time.Second).Add(10 * time.Second)}
	for r := range d.requests {
		d.spans += r.Spans
	}
	return d, nil
}

// capturedSpans reads captured traces, which all begin at the same time here.
func capturedSpans(folder string) (*dataSet, error) {
	all, err := bench.Captured(folder)
	if err != nil {
		return nil, err
	}
	begin := time.Now().Add(-2 * age).Truncate(time.Minute)
	d := &dataSet{begin: begin.Add(-time.Minute), end: begin.Add(age)}
	oldest := make(map[pcommon.TraceID]pcommon.Timestamp)
	for s := range spansOf(all) {
		if t := oldest[s.TraceID()]; t == 0 || s.StartTimestamp() < t {
			oldest[s.TraceID()] = s.StartTimestamp()
		}
		d.trace = s.TraceID().String()
		d.spans++
	}
	for s := range spansOf(all) {
		move := func(t pcommon.Timestamp) pcommon.Timestamp {
			return t - oldest[s.TraceID()] + pcommon.NewTimestampFromTime(begin)
		}
		s.SetStartTimestamp(move(s.StartTimestamp()))
		s.SetEndTimestamp(move(s.EndTimestamp()))
		for _, e := range s.Events().All() {
			e.SetTimestamp(move(e.Timestamp()))
		}
	}
	var requests []bench.Request
	for _, td := range all {
		body, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
		if err != nil {
			return nil, err
		}
		requests = append(requests, bench.Request{Spans: td.SpanCount(), Body: body})
	}
	d.requests = slices.Values(requests)
	return d, nil
}

func spansOf(all []ptrace.Traces) iter.Seq[ptrace.Span] {
	return func(yield func(ptrace.Span) bool) {
		for _, td := range all {
			for _, rs := range td.ResourceSpans().All() {
				for _, ss := range rs.ScopeSpans().All() {
					for _, s := range ss.Spans().All() {
						if !yield(s) {
							return
						}
					}
				}
			}
		}
	}
}
