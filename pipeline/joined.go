package pipeline

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// ConsumeJoined hands batches of one tenant on to next as one, and tells what became of each: outcome is called for runs of neighbours
// that share it, in their order, until all are told. When the joined batch is refused for good, its halves are sent, and so on down to single
// batches: what is wrong with one is refused to that one alone, at the cost of few sends. Of a fan-out, only branches that refused get
// anything again. A receiver's batches are counted one by one, however they travel.
func ConsumeJoined(ctx context.Context, next Consumer, batches []*otlpdata.Batch, outcome func(batches []*otlpdata.Batch, err error)) {
	if e, ok := next.(*receiverEdge); ok {
		e.consumeJoined(ctx, batches, outcome)
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
		dealOut(partial, batches, outcome)
	case len(batches) > 1 && aboutData(err):
		next, half := refusersOf(next, err), len(batches)/2
		ConsumeJoined(ctx, next, batches[:half], outcome)
		ConsumeJoined(ctx, next, batches[half:], outcome)
	default:
		outcome(batches, err)
	}
}

// aboutData reports whether err refuses a batch for good, and might not have refused a part of it.
func aboutData(err error) bool {
	if err == nil {
		return false
	}
	switch c := classify(err); c.code {
	case codes.Unauthenticated, codes.PermissionDenied, codes.Unimplemented: // about the sender, whatever it sends
		return false
	default:
		return c.permanent()
	}
}

// dealOut spreads a partial success over batches that were sent as one. Nobody knows whose spans were rejected, and sending them again is
// forbidden, so the rejected ones are dealt out in order: the sum is exact, and the text says how it came about.
func dealOut(p *Partial, batches []*otlpdata.Batch, outcome func([]*otlpdata.Batch, error)) {
	left := p.Rejected
	for i, b := range batches {
		n := min(left, b.Len())
		left -= n
		var err error
		switch {
		case n > 0 && len(batches) > 1:
			err = &Partial{Rejected: n, Err: fmt.Errorf("of %d requests that were sent as one: %w", len(batches), p.Err)}
		case n > 0:
			err = p
		}
		outcome(batches[i:i+1], err)
	}
}
