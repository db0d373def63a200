package tracestore

import (
	"context"
	"iter"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// SpanReader is implemented by stores that can read what is needed of a trace without reading all
// of its spans in full.
type SpanReader interface {
	// SelectSpans returns the spans of a trace that have one of the ids or a link to a span of the
	// trace with one of the ids. It may return other spans of the trace, too. Otherwise it is like
	// Reader.Traces for one trace.
	SelectSpans(ctx context.Context, tenant string, id otlpdata.TraceID, spans []otlpdata.SpanID) iter.Seq2[Trace, error]
	// FindSpans returns the spans of a trace that meet a condition. After a DamagedError, what it
	// returned is sound, but other spans of the trace could not be read.
	FindSpans(ctx context.Context, tenant string, id otlpdata.TraceID, c SpanCondition) (FoundSpans, error)
	// Outline calls take once with the spans of a trace, in any order and without duplicates. It
	// does not call take if the trace does not exist. If limit is above 0 and the trace has more
	// than limit spans, take gets a part of them that is larger than limit. The spans are valid
	// only during the call.
	//
	// Before that, and repeatedly while it reads, Outline calls hold with the number of spans that
	// it holds in memory and the bytes of their names and Extras. An error of take is returned, and
	// an error of hold is returned, possibly wrapped. A DamagedError after the call of take, if
	// there is one, means that other spans of the trace cannot be read.
	Outline(
		ctx context.Context, tenant string, id otlpdata.TraceID, limit int,
		hold func(spans, textBytes int) error, take func([]SummarySpan) error,
	) error
}

// SelectsSpan reports whether a span must be among those that SelectSpans returns for ids.
func SelectsSpan(s *otlpdata.Span, ids map[otlpdata.SpanID]struct{}) bool {
	_, selected := ids[s.SpanID]
	return selected || LinksTo(s.Links, s.TraceID, ids)
}

// LinksTo reports whether one of the links leads to a span of a trace with one of the ids.
func LinksTo(links []otlpdata.Link, trace otlpdata.TraceID, ids map[otlpdata.SpanID]struct{}) bool {
	for i := range links {
		if _, is := ids[links[i].SpanID]; is && links[i].TraceID == trace {
			return true
		}
	}
	return false
}
