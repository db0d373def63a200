package grpc

import (
	"errors"
	"sync"

	"github.com/tracing-backend/tracing/pipeline"
)

// refusedSpans counts the spans of a batch that the server refused permanently, if the batch is
// sent in several calls. It is safe for concurrent use.
type refusedSpans struct {
	mu    sync.Mutex
	spans int
	first error
}

// record records the outcome of a call with a number of spans. It counts spans that were refused
// because of their content, and returns all other errors.
func (r *refusedSpans) record(err error, spans int) error {
	var partial *pipeline.Partial
	switch {
	case err == nil:
		return nil
	case errors.As(err, &partial):
		spans = partial.Rejected
	case !pipeline.IsAboutData(err):
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spans += spans
	if r.first == nil {
		r.first = err
	}
	return nil
}

// outcome returns the outcome for the batch, which had a number of spans.
func (r *refusedSpans) outcome(spans int) error {
	switch {
	case r.first == nil:
		return nil
	case r.spans >= spans:
		return pipeline.Permanent(r.first)
	}
	return &pipeline.Partial{Rejected: r.spans, Err: r.first}
}
