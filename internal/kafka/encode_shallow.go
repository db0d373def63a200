package kafka

import (
	"slices"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// shallowWalk calls e for every resource, scope and span of a batch, with only the fields that the
// encoder needs to copy and route them. It takes a fraction of the time of a walk.
func (e *encoder) shallowWalk(b *otlpdata.Batch) error {
	chunks, err := b.Chunks()
	if err != nil {
		return err
	}
	for chunk := range chunks {
		if err := e.shallowChunk(chunk); err != nil {
			return err
		}
	}
	return nil
}

// Fields of ResourceSpans and ScopeSpans. Unknown fields are left out.
const (
	groupHead   = 1 // the resource or scope
	groupItems  = 2 // scopes or spans
	groupSchema = 3
)

func (e *encoder) shallowChunk(chunk []byte) error {
	var (
		resource otlpdata.Resource
		scope    otlpdata.Scope
		span     otlpdata.Span
	)
	for r := range protoenc.Fields(chunk) {
		if r.Num != 1 {
			continue
		}
		head, schema := headOf(r.Content)
		scopes := scopesField(r.Content)
		resource = otlpdata.Resource{Raw: head, SchemaURL: schema}
		if e.Key == KeyService {
			decoded, err := otlpdata.ReadResource(head, "")
			if err != nil {
				return err
			}
			resource.Service = decoded.Service
		}
		e.Resource(&resource) //nolint:errcheck // never fails
		for s := range protoenc.Fields(r.Content) {
			if s.Num != scopes {
				continue
			}
			scope.Raw, scope.SchemaURL = headOf(s.Content)
			e.Scope(&scope) //nolint:errcheck // never fails
			for f := range protoenc.Fields(s.Content) {
				if f.Num != groupItems {
					continue
				}
				span.Raw, span.TraceID = f.Content, traceIDOf(f.Content)
				if err := e.Span(&span); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// scopesField returns the field number for the scopes of encoded ResourceSpans: the deprecated
// number if the current one does not occur.
func scopesField(resource []byte) int {
	num := groupItems
	for f := range protoenc.Fields(resource) {
		switch f.Num {
		case groupItems:
			return groupItems
		case oldScopeSpans:
			num = oldScopeSpans
		}
	}
	return num
}

// headOf returns the resource of encoded ResourceSpans, or the scope of encoded ScopeSpans, and the
// schema URL. The concatenated pieces of a message are the message. They are appended to a slice,
// so that a message in many pieces is not copied for each piece.
func headOf(group []byte) (head []byte, schema string) {
	for f := range protoenc.Fields(group) {
		switch f.Num {
		case groupHead:
			if head == nil {
				head = slices.Clip(f.Content) // appending copies
			} else {
				head = append(head, f.Content...)
			}
		case groupSchema:
			schema = string(f.Content)
		}
	}
	return head, schema
}

// traceIDOf returns the trace id of an encoded span.
func traceIDOf(span []byte) (id otlpdata.TraceID) {
	const first = "\x0a\x10" // field 1 with 16 bytes
	if len(span) >= len(first)+len(id) && string(span[:len(first)]) == first {
		return otlpdata.TraceID(span[len(first):])
	}
	for f := range protoenc.Fields(span) {
		if f.Num == 1 && len(f.Content) == len(id) {
			return otlpdata.TraceID(f.Content)
		}
	}
	return id
}
