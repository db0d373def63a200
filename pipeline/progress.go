package pipeline

import "context"

// Progress is the state that an exporter which sends a batch in several requests keeps between
// attempts to send the batch, so that the next hop receives no request twice. All attempts must
// make the same requests in the same order.
type Progress struct {
	Requests int   // number of requests that were answered, with success or a permanent error
	Taken    int   // number of spans in requests that were answered with success
	Refusal  error // first permanent error
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
