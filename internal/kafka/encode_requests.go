package kafka

import (
	"bytes"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/otlpdata/protoenc"
)

// requests builds records from the chunks of a batch: several chunks in a record, and a chunk that
// is too large for a record divided by spans.
func (e *encoder) requests(b *otlpdata.Batch) error {
	chunks, err := b.Chunks()
	if err != nil {
		return err
	}
	all := b.Size() <= e.MaxBytes // one record holds the batch, so its spans need not be counted
	var open [][]byte             // chunks of the open record
	size, spans := 0, 0
	for chunk := range chunks {
		if size+len(chunk) > e.MaxBytes {
			if err := e.request(open, spans); err != nil {
				return err
			}
			open, size, spans = nil, 0, 0
		}
		if len(chunk) > e.MaxBytes {
			if err := e.divide(chunk); err != nil {
				return err
			}
			continue
		}
		open, size = append(open, chunk), size+len(chunk)
		if !all {
			spans += countSpans(chunk)
		}
	}
	if all {
		spans = b.Len()
	}
	return e.request(open, spans)
}

// divide divides a request that is too large for a record.
func (e *encoder) divide(request []byte) error {
	if err := otlpdata.Walk(request, e); err != nil {
		return err
	}
	return e.closeAll()
}

// request builds a record from encoded requests, unless they have no spans.
func (e *encoder) request(requests [][]byte, spans int) error {
	if spans == 0 {
		return nil
	}
	record := int32(len(e.records.List))
	for range spans {
		e.records.assigned = append(e.records.assigned, record)
	}
	value := requests[0]
	if len(requests) > 1 {
		value = bytes.Join(requests, nil)
		if err := e.Grow(len(value)); err != nil {
			return err
		}
	}
	e.records.List = append(e.records.List, Record{Value: value, Partition: AnyPartition, Spans: spans})
	return nil
}

// countSpans returns the number of spans in a valid encoded request.
func countSpans(request []byte) (n int) {
	for resource := range protoenc.Fields(request) {
		if resource.Num != 1 {
			continue
		}
		for scope := range protoenc.Fields(resource.Content) {
			switch scope.Num {
			case 2:
				for span := range protoenc.Fields(scope.Content) {
					if span.Num == 2 {
						n++
					}
				}
			case oldScopeSpans:
				return walkedSpans(request)
			}
		}
	}
	return n
}

// oldScopeSpans is the deprecated field number for the scopes of a resource. It counts unless the
// resource has the current field.
const oldScopeSpans = 1000

func walkedSpans(request []byte) int {
	var c spanCounter
	if otlpdata.Walk(request, &c) != nil {
		return 0 // not possible: the request is valid
	}
	return int(c)
}

// spanCounter is a visitor that counts spans.
type spanCounter int

func (c *spanCounter) Resource(*otlpdata.Resource) error { return nil }
func (c *spanCounter) Scope(*otlpdata.Scope) error       { return nil }
func (c *spanCounter) Span(*otlpdata.Span) error         { *c++; return nil }
