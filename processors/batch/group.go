package batch

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// group is the calls of one send. Its context ends when every caller has left, and when the processor is stopped and the time for that is
// over: one caller that gives up must not take the others along.
type group struct {
	calls   []*call
	present atomic.Int64 // callers that still wait
	ctx     context.Context
	cancel  context.CancelFunc
}

func newGroup(life context.Context, calls []*call) *group {
	g := &group{calls: calls}
	g.present.Store(int64(len(calls)))
	g.ctx, g.cancel = context.WithCancel(life)
	for _, c := range calls {
		c.group = g
	}
	return g
}

func (g *group) leave() {
	if g.present.Add(-1) == 0 {
		g.cancel()
	}
}

// send sends the group as one request and tells each caller its outcome.
func (g *group) send(next pipeline.Consumer) {
	defer g.cancel()
	if len(g.calls) == 1 {
		g.alone(next)
		return
	}
	parts := make([]*otlpdata.Batch, len(g.calls))
	for i, c := range g.calls {
		parts[i] = c.batch
	}
	joined, err := otlpdata.Concat(parts...)
	if err != nil {
		g.alone(next)
		return
	}
	err = next.Consume(g.ctx, joined)
	var partial *pipeline.Partial
	switch {
	case errors.As(err, &partial):
		g.share(partial)
	case err != nil && pipeline.IsPermanent(err):
		g.alone(pipeline.Refusers(next, err))
	default:
		for _, c := range g.calls {
			c.outcome <- err
		}
	}
}

// alone sends each request by itself.
func (g *group) alone(next pipeline.Consumer) {
	for _, c := range g.calls {
		c.outcome <- next.Consume(g.ctx, c.batch)
	}
}

// share spreads a partial success over the callers. Nobody knows whose spans were rejected, and sending them again is forbidden, so the
// rejected ones are dealt out in order: the sum is exact, and the text says how it came about.
func (g *group) share(p *pipeline.Partial) {
	left := p.Rejected
	for _, c := range g.calls {
		n := min(left, c.batch.Len())
		left -= n
		if n == 0 {
			c.outcome <- nil
			continue
		}
		c.outcome <- &pipeline.Partial{Rejected: n, Err: fmt.Errorf("of %d requests that were sent as one: %w", len(g.calls), p.Err)}
	}
}
