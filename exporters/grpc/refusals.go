package grpc

import (
	"errors"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tracing-backend/tracing/pipeline"
)

// refusals are the spans of a batch that were refused for good, where the batch is sent in several calls. Safe for concurrent use.
type refusals struct {
	mu    sync.Mutex
	spans int
	first error
}

// except takes the outcome of a call with so many spans. What was refused for what the spans are is noted; every other error is returned.
func (r *refusals) except(err error, spans int) error {
	var partial *pipeline.Partial
	switch {
	case errors.As(err, &partial):
		spans = partial.Rejected
	case !isOfData(err):
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

// outcome is that of the batch, which had so many spans.
func (r *refusals) outcome(spans int) error {
	switch {
	case r.first == nil:
		return nil
	case r.spans >= spans:
		return pipeline.Permanent(r.first)
	}
	return &pipeline.Partial{Rejected: r.spans, Err: r.first}
}

// isOfData reports whether err is a refusal for good of the spans that were sent, and not of whoever sends them.
func isOfData(err error) bool {
	switch status.Code(err) {
	case codes.Unimplemented, codes.PermissionDenied, codes.Unauthenticated:
		return false
	}
	return err != nil && pipeline.IsPermanent(err)
}
