package kafka

import (
	"bytes"

	"github.com/tracing-backend/tracing/internal/translate/native"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// spanEncoder is a visitor that writes a record for every span, for Jaeger's encodings.
type spanEncoder struct {
	*encoder
	spans   native.Spans
	proto   []byte // of the last span
	scratch []byte
}

// Resource implements otlpdata.Visitor.
func (e *spanEncoder) Resource(r *otlpdata.Resource) error {
	e.spans.Resource(r) //nolint:errcheck // never fails
	return e.encoder.Resource(r)
}

// Scope implements otlpdata.Visitor.
func (e *spanEncoder) Scope(s *otlpdata.Scope) error {
	e.spans.Scope(s) //nolint:errcheck // never fails
	return e.encoder.Scope(s)
}

// Span implements otlpdata.Visitor.
func (e *spanEncoder) Span(s *otlpdata.Span) error {
	e.route(s)
	value := e.encode(s)
	if len(e.key)+len(value) > e.MaxBytes {
		return e.reject(len(value))
	}
	if err := e.count(len(value)); err != nil {
		return err
	}
	e.records.assigned = append(e.records.assigned, int32(len(e.records.List)))
	r := Record{Value: bytes.Clone(value), Partition: e.partition(), Spans: 1}
	if e.Key != KeyNone {
		r.Key = append([]byte{}, e.key...)
	}
	e.records.List = append(e.records.List, r)
	return nil
}

// encode encodes a span. The result is valid until the next one.
func (e *spanEncoder) encode(s *otlpdata.Span) []byte {
	e.proto = e.spans.Append(e.proto[:0], s)
	if e.Encoding == JaegerProto || len(e.proto) > e.MaxBytes {
		return e.proto
	}
	e.scratch = native.AppendJSON(e.scratch[:0], e.proto)
	return e.scratch
}
