package batch

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// group holds the calls of one joined send. Its context ends when all callers (not only one) have
// left, and when the processor's Stop reaches its deadline. If all callers have deadlines, the
// context has the latest of them, so that the next Consumer does not start work whose outcome would
// be too late for all of them.
type group struct {
	calls   []*call
	waiting atomic.Int64 // callers that still wait
	ctx     context.Context
	cancel  context.CancelFunc
}

func newGroup(parent context.Context, calls []*call) *group {
	g := &group{calls: calls}
	g.waiting.Store(int64(len(calls)))
	if latest, ok := latestDeadline(calls); ok {
		g.ctx, g.cancel = context.WithDeadline(parent, latest)
	} else {
		g.ctx, g.cancel = context.WithCancel(parent)
	}
	for _, c := range calls {
		c.group = g
	}
	return g
}

// latestDeadline returns the latest deadline of the callers; ok is false if one has none.
func latestDeadline(calls []*call) (latest time.Time, ok bool) {
	for _, c := range calls {
		deadline, ok := c.caller.Deadline()
		if !ok {
			return time.Time{}, false
		}
		if deadline.After(latest) {
			latest = deadline
		}
	}
	return latest, true
}

// leave is called when the context of a caller has ended.
func (g *group) leave() {
	if g.waiting.Add(-1) == 0 {
		g.cancel()
	}
}

// send sends the group as one request and reports the outcome to each caller.
func (g *group) send(next pipeline.Consumer) {
	defer g.cancel()
	batches := make([]*otlpdata.Batch, len(g.calls))
	for i, c := range g.calls {
		batches[i] = c.batch
	}
	remaining := g.calls
	pipeline.ConsumeJoined(g.ctx, next, batches, func(of []*otlpdata.Batch, err error) {
		for _, c := range remaining[:len(of)] {
			c.outcome <- err
		}
		remaining = remaining[len(of):]
	})
}
