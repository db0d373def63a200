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

func (p *Progress) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, progressKey{}, p)
}

// unfinished is the error of a delivery that was given up while trying again might have helped, after the next hop had taken some of the
// spans. To a caller it stands for all of them, as any error that is not a [Partial].
type unfinished struct {
	taken int
	err   error
}

func (e *unfinished) Error() string { return e.err.Error() }
func (e *unfinished) Unwrap() error { return e.err }

// outcome is that of the delivery, of which the last attempt ended with err.
func (p *Progress) outcome(err error) error {
	if err == nil || p.Taken == 0 || !retryable(err) {
		return err
	}
	return &unfinished{p.Taken, err}
}
