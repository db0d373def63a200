package native

import (
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// Spans encodes single spans, each with its process. Resource and Scope apply to the spans that
// follow. It follows the rules of [SplitPostSpans]. It is not safe for concurrent use.
type Spans struct {
	process []byte // the current resource as an encoded Process
	scope   []byte // the current scope as encoded tags of a span
}

// Resource sets the resource of the spans that follow.
func (e *Spans) Resource(r *otlpdata.Resource) error {
	e.process = appendProcess(e.process[:0], r.Attributes)
	return nil
}

// Scope sets the scope of the spans that follow.
func (e *Spans) Scope(s *otlpdata.Scope) error {
	e.scope = appendScope(e.scope[:0], s)
	return nil
}

// Append appends the span as an encoded Span (package api_v2).
func (e *Spans) Append(dst []byte, s *otlpdata.Span) []byte {
	dst = appendSpan(dst, s, e.scope)
	dst = protoenc.AppendBytes(dst, spanProcess, e.process)
	return appendWarnings(dst, s.Attributes)
}
