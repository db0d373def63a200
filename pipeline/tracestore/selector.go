package tracestore

import (
	"context"
	"iter"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// SpanSelector is implemented by stores that can read single spans of a trace without reading the
// others in full.
type SpanSelector interface {
	// SelectSpans returns the spans of a trace that have one of the ids or a link to a span of the
	// trace with one of the ids. It may return other spans of the trace, too. Otherwise it is like
	// Reader.Traces for one trace.
	SelectSpans(ctx context.Context, tenant string, id otlpdata.TraceID, spans []otlpdata.SpanID) iter.Seq2[Trace, error]
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
