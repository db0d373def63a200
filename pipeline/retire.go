package pipeline

import (
	"context"
	"sync"

	"go.uber.org/zap"
)

// retirement is the exporters that are out of the graph and still send what they have acknowledged.
type retirement struct {
	going sync.WaitGroup

	mu     sync.Mutex
	ctx    context.Context // ends when they must
	giveUp context.CancelFunc
}

// begin stops an exporter in the background.
func (r *retirement) begin(a *App, n *node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx == nil {
		r.ctx, r.giveUp = context.WithCancel(context.Background())
	}
	ctx := r.ctx
	a.log.Info("an exporter that is not needed any more sends what is in its queue", zap.Stringer("exporter", n),
		zap.Int64("spans", n.edge.queue.state().spans))
	r.going.Go(func() {
		if err := stopSafely(ctx, n); err != nil {
			a.log.Error("a component that is not needed any more did not stop cleanly", zap.Stringer("stopped", n), zap.Error(err))
		}
		a.tel.queues.forget(n.config.key, n.edge.queue)
	})
}

// wait returns when all have ended, which they do soon after ctx.
func (r *retirement) wait(ctx context.Context) {
	r.mu.Lock()
	giveUp := r.giveUp
	r.mu.Unlock()
	if giveUp == nil {
		return
	}
	defer giveUp()
	defer context.AfterFunc(ctx, giveUp)()
	r.going.Wait()
}
