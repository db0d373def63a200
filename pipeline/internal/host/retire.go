package host

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// handOverTime is how long a replaced component waits for its clients to reconnect: most clients
// send a request every few seconds.
const handOverTime = 10 * time.Second

// maxRetiring is the maximum number of earlier configurations whose components have not all
// stopped.
const maxRetiring = 8

// retirement stops components in the background that were removed from the graph: components whose
// replacement is already running, and exporters that are emptying their queues in memory.
type retirement struct {
	app    *App
	ctx    context.Context // of all stops; ends when the process may no longer wait
	cancel context.CancelFunc
	moving context.Context // of calls of HandOver
	hurry  context.CancelFunc
	slots  chan struct{} // an element for each earlier configuration

	queues     sync.WaitGroup
	components sync.WaitGroup

	mu    sync.Mutex
	nodes []*node // components that have not stopped
}

func newRetirement(a *App) *retirement {
	r := &retirement{app: a, slots: make(chan struct{}, maxRetiring)}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.moving, r.hurry = context.WithCancel(r.ctx)
	return r
}

// emptyQueue stops an exporter when its queue is empty.
func (r *retirement) emptyQueue(n *node) {
	r.app.log.Info("emptying the sending queue of a removed exporter", zap.Stringer("exporter", n),
		zap.Int64(n.signal.Key(), n.edge.QueuedSpans()))
	r.queues.Go(func() {
		r.log(n, stopSafely(r.ctx, n))
		n.edge.ForgetQueue()
	})
}

// awaitSlot waits until the channels are closed and another configuration may be replaced.
func (r *retirement) awaitSlot(ctx context.Context, channels []<-chan struct{}) error {
	if len(channels) > 0 || len(r.slots) == cap(r.slots) {
		r.app.log.Info("reload waits until components of earlier configurations have finished their requests")
	}
	unfinished := errors.New("components of earlier configurations have not finished their requests")
	if !awaitAll(ctx, channels) {
		return unfinished
	}
	select {
	case r.slots <- struct{}{}:
		return nil
	default:
	}
	select {
	case r.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return unfinished
	}
}

// begin stops components, which are in the order of a graph, each after the components that call it
// or refer to it. Processors and connectors also wait for left: channels that are closed when all
// calls have returned that entered a gate before it was redirected. The caller must have called
// awaitSlot.
func (r *retirement) begin(nodes []*node, left []<-chan struct{}) {
	var generation sync.WaitGroup
	for _, n := range slices.Backward(nodes) {
		callers := r.stopped(func(m *node) bool { return slices.Contains(m.refs, n) || m.calls(n) })
		var calls []<-chan struct{}
		if !n.hasClients() {
			calls = left
		}
		r.add(n)
		generation.Add(1)
		r.components.Go(func() {
			defer generation.Done()
			r.stop(n, callers, calls)
		})
	}
	go func() {
		generation.Wait()
		<-r.slots
	}()
}

// stop stops a component after its callers have stopped, because they may pass on held spans when
// they stop, and after other calls have returned. It waits for the callers as long as they take; if
// the ctx of all stops ends, their stops end too. Each further step has the stop timeout.
func (r *retirement) stop(n *node, callers, calls []<-chan struct{}) {
	defer r.remove(n)
	r.log(n, n.handOver(r.moving, handOverTime))
	for _, c := range callers {
		<-c
	}
	r.await(calls)
	ctx, cancel := r.stopContext()
	defer cancel()
	r.log(n, stopSafely(ctx, n))
	if n.gate != nil {
		r.await([]<-chan struct{}{n.gate.Open(refuseAll{})})
	}
}

func (r *retirement) stopContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.ctx, r.app.Config().Service.StopTimeout.Std())
}

// await waits until all channels are closed, at most the stop timeout.
func (r *retirement) await(channels []<-chan struct{}) {
	ctx, cancel := r.stopContext()
	defer cancel()
	awaitAll(ctx, channels)
}

// awaitAll waits until all channels are closed, and reports whether they were before ctx ended.
func awaitAll(ctx context.Context, channels []<-chan struct{}) bool {
	for _, c := range channels {
		select {
		case <-c:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func (r *retirement) add(n *node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n.stopped = make(chan struct{})
	r.nodes = append(r.nodes, n)
}

func (r *retirement) remove(n *node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nodes = slices.DeleteFunc(r.nodes, func(m *node) bool { return m == n })
	close(n.stopped)
}

// stopped returns channels that are closed when the selected components have stopped.
func (r *retirement) stopped(of func(*node) bool) (channels []<-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.nodes {
		if of(n) {
			channels = append(channels, n.stopped)
		}
	}
	return channels
}

// log logs an error of a component that was removed.
func (r *retirement) log(n *node, err error) {
	if err != nil {
		r.app.log.Error("a removed component did not stop cleanly", zap.Stringer("stopped", n), zap.Error(err))
	}
}

// awaitComponents returns when all replaced components have stopped, which happens soon after ctx
// ends.
func (r *retirement) awaitComponents(ctx context.Context) {
	defer context.AfterFunc(ctx, r.cancel)()
	r.components.Wait()
}

// awaitQueues returns when all exporters have stopped, which happens soon after ctx ends.
func (r *retirement) awaitQueues(ctx context.Context) {
	defer context.AfterFunc(ctx, r.cancel)()
	r.queues.Wait()
}
