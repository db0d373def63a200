package otlpdata

import "github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"

// AppendResourceSpans appends one ResourceSpans, as a field of an ExportTraceServiceRequest, that
// holds the given encoded spans (Span.Raw) under one resource and one scope. Only Raw and SchemaURL
// of r and s are used. Stores use it to return received spans without decoding them.
func AppendResourceSpans(dst []byte, r *Resource, s *Scope, spans ...[]byte) []byte {
	scopeSpans := protoenc.SizeBytes(len(s.Raw)) + protoenc.SizeString(s.SchemaURL)
	for _, sp := range spans {
		scopeSpans += protoenc.SizeBytes(len(sp))
	}
	dst = protoenc.AppendHeader(dst, 1, protoenc.SizeBytes(len(r.Raw))+protoenc.SizeBytes(scopeSpans)+protoenc.SizeString(r.SchemaURL))
	dst = protoenc.AppendBytes(dst, 1, r.Raw)
	dst = protoenc.AppendHeader(dst, 2, scopeSpans)
	dst = protoenc.AppendBytes(dst, 1, s.Raw)
	for _, sp := range spans {
		dst = protoenc.AppendBytes(dst, 2, sp)
	}
	dst = protoenc.AppendString(dst, 3, s.SchemaURL)
	return protoenc.AppendString(dst, 3, r.SchemaURL)
}
