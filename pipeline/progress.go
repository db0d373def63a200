package pipeline

import (
	"context"
	"errors"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Progress is the state that an exporter which sends a batch in several requests keeps between
// attempts to send the batch, so that no next hop receives a request twice. An exporter uses either
// Requests, if all attempts make the same requests in the same order, or Remaining.
type Progress struct {
	Requests  int             // number of requests that were answered, with success or a permanent error
	Remaining *otlpdata.Batch // spans of requests that were not answered so; nil before the first attempt
	Taken     int             // number of spans in requests that were answered with success
	Refusal   error           // first permanent error or *Partial
}

// Result returns the error of Consume for a batch of this number of spans, after every request was
// answered with success or a permanent error: nil, Refusal if it is permanent and no span was
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
