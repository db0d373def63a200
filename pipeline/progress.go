package pipeline

import "context"

// Progress is what an exporter that makes several requests of one batch remembers from one attempt to send it to the next, so that the next
// hop gets none of them twice. All attempts have to make the same requests in the same order.
type Progress struct {
	Requests int   // requests that were answered: with yes, or for good with no
	Taken    int   // spans of those that were answered with yes
	Refusal  error // the first no
}

type progressKey struct{}

// ProgressOf returns the progress of the delivery that ctx belongs to. The framework begins one for each batch that it gives to an exporter
// with a [Delivery]; anywhere else it is a new one. It is for the goroutine of Consume alone.
func ProgressOf(ctx context.Context) *Progress {
	if p, ok := ctx.Value(progressKey{}).(*Progress); ok {
		return p
	}
	return new(Progress)
}

func withProgress(ctx context.Context) context.Context {
	return context.WithValue(ctx, progressKey{}, new(Progress))
}
