package pipeline

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"

	"github.com/tracing-backend/tracing/pipeline/internal/errclass"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// joinedConsumer is implemented by Consumers that account for each of the joined batches.
type joinedConsumer interface {
	ConsumeJoined(ctx context.Context, batches []*otlpdata.Batch, outcome func([]*otlpdata.Batch, error))
}

// branching is implemented by Consumers that may pass a batch to several branches. Refusing returns
// the part of the Consumer that refused a batch with err, so that branches that accepted the batch
// do not get its spans twice.
type branching interface {
	Refusing(err error) Consumer
}

// ConsumeJoined passes batches of one tenant to next as one batch and reports the outcome of each.
// It calls outcome, in order, for runs of adjacent batches with the same outcome until all batches
// are reported.
//
// If the joined batch is refused permanently, its halves are sent, and so on down to single
// batches. So a refused batch does not affect the others, at the cost of a few more sends. If next
// is a fan-out, only branches that refused the batch get its halves.
func ConsumeJoined(ctx context.Context, next Consumer, batches []*otlpdata.Batch, outcome func(batches []*otlpdata.Batch, err error)) {
	if j, ok := next.(joinedConsumer); ok {
		j.ConsumeJoined(ctx, batches, outcome)
		return
	}
	if len(batches) == 0 {
		return
	}
	joined, err := otlpdata.Concat(batches...)
	if err == nil {
		err = next.Consume(ctx, joined)
	} else {
		err = Permanent(err)
	}
	var partial *Partial
	switch {
	case errors.As(err, &partial):
		distribute(partial, batches, outcome)
	case len(batches) > 1 && refusesData(err):
		if b, ok := next.(branching); ok {
			next = b.Refusing(err)
		}
		half := len(batches) / 2
		ConsumeJoined(ctx, next, batches[:half], outcome)
		ConsumeJoined(ctx, next, batches[half:], outcome)
	default:
		outcome(batches, err)
	}
}

// refusesData reports whether err is permanent and caused by the data, so that a part of the batch
// might be accepted.
func refusesData(err error) bool {
	if err == nil {
		return false
	}
	switch c := errclass.Of(err); c.Code {
	case codes.Unauthenticated, codes.PermissionDenied, codes.Unimplemented: // caused by the sender, not the data
		return false
	default:
		return c.Permanent()
	}
}

// distribute reports a partial success as outcomes of the joined batches. It is unknown which spans
// were rejected, and they must not be resent, so rejected spans are attributed to the batches
// in order: the sum is exact, and the error text says that the batches were sent as one.
func distribute(p *Partial, batches []*otlpdata.Batch, outcome func([]*otlpdata.Batch, error)) {
	left := p.Rejected
	for i, b := range batches {
		n := min(left, b.Len())
		left -= n
		var err error
		switch {
		case n > 0 && len(batches) > 1:
			err = &Partial{Rejected: n, Err: fmt.Errorf("in a batch of %d joined requests: %w", len(batches), p.Err)}
		case n > 0:
			err = p
		}
		outcome(batches[i:i+1], err)
	}
}
