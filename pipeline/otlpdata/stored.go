package otlpdata

import "math"

// FromStored returns a Batch for a chunk that a store assembled from the content of other batches
// (see [AppendResourceSpans]). The chunk is not revalidated. services holds the number of spans by
// service; a service may occur several times. The Batch keeps chunk.
func FromStored(chunk []byte, m Meta, services ...ServiceCount) *Batch {
	var c counter
	spans := 0
	for _, s := range services {
		c.merge(s)
		spans += s.Spans
	}
	return &Batch{meta: m, encoded: [][]byte{chunk}, services: c.services, spans: spans, size: len(chunk)}
}

// SpanReader decodes single spans and reuses its memory for each. The zero value is ready to use. A
// SpanReader must not be used concurrently.
type SpanReader struct{ w walker }

// Read decodes an encoded span, as in [Span.Raw]. The result is valid until the next Read; its
// strings alias raw. An error means that raw is not an encoded span.
func (r *SpanReader) Read(raw []byte) (*Span, error) {
	r.w.lim = Limits{Items: math.MaxInt, Depth: maxDepth}
	if err := r.w.decodeSpan(raw); err != nil {
		return nil, err
	}
	return &r.w.span, nil
}

// ReadResource decodes an encoded resource, as in [Resource.Raw]. Its strings alias raw.
func ReadResource(raw []byte, schemaURL string) (Resource, error) {
	w := walker{lim: Limits{Items: math.MaxInt, Depth: maxDepth}}
	if err := w.decodeResource(raw); err != nil {
		return Resource{}, err
	}
	w.resource.Service, w.resource.SchemaURL = ServiceName(w.resource.Attributes), schemaURL
	return w.resource, nil
}

// ReadScope decodes an encoded scope, as in [Scope.Raw]. Its strings alias raw.
func ReadScope(raw []byte, schemaURL string) (Scope, error) {
	w := walker{lim: Limits{Items: math.MaxInt, Depth: maxDepth}}
	if err := w.decodeScope(raw); err != nil {
		return Scope{}, err
	}
	w.scope.SchemaURL = schemaURL
	return w.scope, nil
}
