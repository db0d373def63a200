package tracestore

import (
	"unsafe"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Summary describes a trace in a list of results. Times are nanoseconds since the Unix epoch.
type Summary struct {
	ID otlpdata.TraceID
	// RootService, RootName and Root (its id) describe the root span: the earliest span without a
	// parent, otherwise the earliest span whose parent is not in the trace, otherwise the earliest
	// span. Spans with the same start are ordered by span id, service and name. Spans without a
	// start time come after all others.
	RootService, RootName string
	Root                  otlpdata.SpanID
	// Start and End are the earliest start, and the latest end as corrected by
	// otlpdata.Span.Duration, of the spans with a start time. Start is 0 if no span has one.
	Start, End    uint64
	Spans, Errors int
	Orphans       int // spans whose parent is not in the trace
	Services      []ServiceSummary
}

// ServiceSummary counts the spans of one service in a trace. Summary lists services by name.
type ServiceSummary struct {
	Name          string
	Spans, Errors int
}

// SummarySpan holds the fields of a span that a summary or an outline needs.
type SummarySpan struct {
	ID, Parent      otlpdata.SpanID
	Start, Duration uint64 // nanoseconds; Duration as corrected by otlpdata.Span.Duration
	Service, Name   string // as corrected by otlpdata.ServiceName and otlpdata.Span.Operation
	Failed          bool

	// The following fields are set for outlines only.

	Reversed bool // the span ends before it starts
	Kind     int32
	Host     uint32 // spans with the same number have the same host (otlpdata.HostOf); 0: unknown
	Extras   *SpanExtras
}

// SpanExtras holds fields that only some spans of an outline have. SummarySpan.Extras is nil for a
// span without any.
type SpanExtras struct {
	Peer   string // see storequery.PeerOf
	Links  int    // number of links
	Events []SpanEvent
}

// SpanEvent is an event of a span in an outline.
type SpanEvent struct {
	Time uint64 // nanoseconds since the Unix epoch
	Name string
}

// Size returns the approximate memory of the extras in bytes. It is 0 for nil.
func (x *SpanExtras) Size() int {
	if x == nil {
		return 0
	}
	n := int(unsafe.Sizeof(*x)) + len(x.Peer)
	for i := range x.Events {
		n += int(unsafe.Sizeof(x.Events[i])) + len(x.Events[i].Name)
	}
	return n
}
