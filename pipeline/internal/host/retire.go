package host

import (
	"context"
	"sync"

	"go.uber.org/zap"
)

// retirement holds exporters that were removed from the graph and still send what is in their
// queues in memory.
type retirement struct {
	stopping sync.WaitGroup

	mu     sync.Mutex
	ctx    context.Context // of all stops; nil before the first one
	cancel context.CancelFunc
}

// begin stops an exporter in the background.
func (r *retirement) begin(a *App, n *node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx == nil {
		r.ctx, r.cancel = context.WithCancel(context.Background())
	}
	ctx := r.ctx
	a.log.Info("emptying the sending queue of a removed exporter", zap.Stringer("exporter", n), zap.Int64("spans", n.edge.QueuedSpans()))
	r.stopping.Go(func() {
		if err := stopSafely(ctx, n); err != nil {
			a.log.Error(msgRemovedUncleanly, zap.Stringer("stopped", n), zap.Error(err))
		}
		n.edge.ForgetQueue()
	})
}

// wait returns when all exporters have stopped, which happens soon after ctx ends.
func (r *retirement) wait(ctx context.Context) {
	r.mu.Lock()
	cancel := r.cancel
	r.mu.Unlock()
	if cancel == nil {
		return
	}
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	r.stopping.Wait()
}
