package tracestore

import "github.com/tracing-backend/tracing/pipeline/otlpdata"

// Summary is a trace in a list of results. Times are nanoseconds since the Unix epoch.
type Summary struct {
	ID otlpdata.TraceID
	// RootService and RootName are of the span without a parent, the earliest where there are several; of the earliest span whose
	// parent is not in the trace where there is none; of the earliest span where there is neither. Spans that start together are
	// taken in the order of span id, service, name.
	RootService, RootName string
	Start, End            uint64 // least start, and greatest end as otlpdata.Span.Duration mends it
	Spans, Errors         int
	Orphans               int // spans whose parent is not in the trace
	Services              []ServiceSummary
}

// ServiceSummary is one service's share of a trace, in Summary sorted by name.
type ServiceSummary struct {
	Name          string
	Spans, Errors int
}

// SummarySpan is what a summary needs of a span.
type SummarySpan struct {
	ID, Parent      otlpdata.SpanID
	Start, Duration uint64 // nanoseconds; Duration as otlpdata.Span.Duration mends it
	Service, Name   string // as otlpdata.ServiceName and otlpdata.Span.Operation mend them
	Kind            int32  // of outlines only; summaries do without
	Failed          bool
}
