package batch

import (
	"context"
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
	batches := make([]*otlpdata.Batch, len(g.calls))
	for i, c := range g.calls {
		batches[i] = c.batch
	}
	left := g.calls
	pipeline.ConsumeJoined(g.ctx, next, batches, func(of []*otlpdata.Batch, err error) {
		for _, c := range left[:len(of)] {
			c.outcome <- err
		}
		left = left[len(of):]
	})
}
