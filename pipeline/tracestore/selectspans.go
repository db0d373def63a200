package tracestore

import "github.com/tracing-backend/tracing/pipeline/otlpdata"

// SelectsSpan reports whether a span must be among those that SelectSpans returns for ids.
func SelectsSpan(s *otlpdata.Span, ids map[otlpdata.SpanID]struct{}) bool {
	_, selected := ids[s.SpanID]
	return selected || LinksTo(s.Links, s.TraceID, ids)
}

// LinksTo reports whether one of the links points to a span of a trace with one of the ids.
func LinksTo(links []otlpdata.Link, trace otlpdata.TraceID, ids map[otlpdata.SpanID]struct{}) bool {
	for i := range links {
		if _, is := ids[links[i].SpanID]; is && links[i].TraceID == trace {
			return true
		}
	}
	return false
}
