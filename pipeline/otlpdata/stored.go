package otlpdata

import "math"

// FromStored makes a Batch of a segment that a store put together from what it had read out of Batches (see [AppendResourceSpans]). Nothing
// is checked again. services says how many spans of each service it holds; a service may be named several times. The Batch keeps segment.
func FromStored(segment []byte, m Meta, services ...ServiceCount) *Batch {
	var c counter
	spans := 0
	for _, s := range services {
		c.merge(s)
		spans += s.Spans
	}
	return &Batch{meta: m, encoded: [][]byte{segment}, services: c.services, spans: spans, size: len(segment)}
}

// SpanReader decodes single spans. It keeps what it allocated, and the last spans' memory, for the next one. The zero value is ready. Not
// for concurrent use.
type SpanReader struct{ w walker }

// Read decodes the span of which raw is the encoding, as in [Span.Raw]. The span is valid until the next Read; its strings alias raw. An
// error means that raw is no encoded span.
func (r *SpanReader) Read(raw []byte) (*Span, error) {
	r.w.lim = Limits{Items: math.MaxInt, Depth: maxDepth}
	if err := r.w.decodeSpan(raw); err != nil {
		return nil, err
	}
	return &r.w.span, nil
}

// ReadResource decodes the resource of which raw is the encoding, as in [Resource.Raw]. Its strings alias raw.
func ReadResource(raw []byte, schemaURL string) (Resource, error) {
	w := walker{lim: Limits{Items: math.MaxInt, Depth: maxDepth}}
	if err := w.decodeResource(raw); err != nil {
		return Resource{}, err
	}
	w.resource.Service, w.resource.SchemaURL = ServiceName(w.resource.Attributes), schemaURL
	return w.resource, nil
}

// ReadScope decodes the scope of which raw is the encoding, as in [Scope.Raw]. Its strings alias raw.
func ReadScope(raw []byte, schemaURL string) (Scope, error) {
	w := walker{lim: Limits{Items: math.MaxInt, Depth: maxDepth}}
	if err := w.decodeScope(raw); err != nil {
		return Scope{}, err
	}
	w.scope.SchemaURL = schemaURL
	return w.scope, nil
}
