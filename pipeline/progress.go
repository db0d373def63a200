package pipeline

import (
	"context"
	"errors"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Progress is what an exporter that sends a batch in several requests remembers between attempts,
// so that no next hop receives a request twice. An exporter uses Requests if all attempts make the
// same requests in the same order, otherwise Remaining.
type Progress struct {
	Requests  int             // number of requests that were answered, with success or a permanent error
	Remaining *otlpdata.Batch // spans of all other requests; nil before the first attempt
	Taken     int             // number of spans in requests that were answered with success
	Refusal   error           // first permanent error or *Partial
}

// Result returns the error of Consume for a batch of this number of spans, after every request was
// answered with success or a permanent error: nil, or Refusal if it is permanent and no span was
// accepted, or else a [*Partial].
func (p *Progress) Result(spans int) error {
	var partial *Partial
	switch {
	case errors.As(p.Refusal, &partial):
		return &Partial{Rejected: spans - p.Taken, Err: partial.Err}
	case p.Refusal == nil || p.Taken == 0:
		return p.Refusal
	}
	return &Partial{Rejected: spans - p.Taken, Err: p.Refusal}
}

type progressKey struct{}

// ProgressOf returns the progress of the delivery that ctx belongs to. The framework begins one for
// each batch that it passes to an exporter with a [Delivery]; for any other context, ProgressOf
// returns a new one. Only the goroutine of Consume may use it.
func ProgressOf(ctx context.Context) *Progress {
	if p, ok := ctx.Value(progressKey{}).(*Progress); ok {
		return p
	}
	return new(Progress)
}

// WithProgress returns a context for which [ProgressOf] returns p.
func WithProgress(ctx context.Context, p *Progress) context.Context {
	return context.WithValue(ctx, progressKey{}, p)
}
