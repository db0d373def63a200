package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config"
	"github.com/tracing-backend/tracing/pipeline/internal/delivery"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/status"
)

// transition replaces the running graph by another one while nodes that are in both keep running:
//
//  1. Stop nodes that are not in the new graph and cannot run beside their replacement, such as
//     exporters, whose replacement may need the same folder. Close and drain the gates that lead to
//     them.
//  2. From the exporters on: start new nodes, which get the sockets of those that they replace,
//     lead nodes to their new successors, and open the gates.
//  3. Stop the other nodes that are not in the new graph in the background: receivers, processors
//     and most extensions. They finish their requests.
//
// Callers wait at closed gates only while an exporter is replaced.
type transition struct {
	app      *App
	from, to *graph
	left     []<-chan struct{} // each is closed when no call uses the previous successors of a node
}

// empty reports whether the graphs have the same nodes and connections.
func (t *transition) empty() bool {
	removed := func(n *node) bool { return !t.to.has(n) }
	changed := func(n *node) bool {
		return !t.from.has(n) || !t.to.connected(n) || t.from.collects[n] != t.to.collects[n]
	}
	return !slices.ContainsFunc(t.from.nodes, removed) && !slices.ContainsFunc(t.to.nodes, changed)
}

// blocks reports whether a node must have stopped before new nodes are started. A component without
// Start holds nothing that its replacement needs.
func (t *transition) blocks(n *node) bool {
	if t.to.has(n) {
		return false
	}
	_, starts := n.component.(pipeline.Starter)
	_, replaceable := n.component.(pipeline.Replaceable)
	exclusive := starts && !replaceable
	switch kind := n.config.Key.Kind; {
	case kind == pipeline.KindExporter || slices.ContainsFunc(n.refs, t.blocks):
		return true
	case kind == pipeline.KindProcessor || kind == pipeline.KindConnector:
		return exclusive || t.leadsToBlocking(n)
	case kind == pipeline.KindReceiver && t.to.find(n.config.Key) == nil && t.leadsToBlocking(n):
		return true // its spans have no other destination
	default:
		return exclusive
	}
}

// leadsToBlocking reports whether the gate of a node leads to a node that blocks. The edge of an
// exporter does not, if the replacement of the exporter uses it.
func (t *transition) leadsToBlocking(n *node) bool {
	return slices.ContainsFunc(t.from.nodes, func(m *node) bool { return n.calls(m) && !t.edgeStays(m) && t.blocks(m) })
}

func (t *transition) edgeStays(n *node) bool { return n.edge != nil && t.to.hasEdge(n.edge) }

// blocking returns the nodes that must have stopped before new nodes are started.
func (t *transition) blocking() []*node {
	return slices.DeleteFunc(slices.Clone(t.from.nodes), func(n *node) bool { return !t.blocks(n) })
}

// earlierCallers returns channels that are closed when components of earlier configurations that
// use blocking nodes have stopped. When they stop, they pass on held spans, which would be lost
// without these nodes.
func (t *transition) earlierCallers() []<-chan struct{} {
	blocking := t.blocking()
	return t.app.retiring.stopped(func(m *node) bool {
		return slices.ContainsFunc(blocking, func(n *node) bool { return slices.Contains(m.refs, n) || m.calls(n) && !t.edgeStays(n) })
	})
}

// briefHandOver is how long a component that stops before its replacement starts waits for clients
// that are about to send a request on an open connection. New connections wait meanwhile.
const briefHandOver = time.Second

// stopBlocking stops nodes that block, and drains the gates that lead to them. Receivers and
// extensions, whose clients may be slow, stop before gates are closed, unless an exporter or a
// processor that stops needs them. Receivers stop first, so that no call that a stop waits for is
// held up at a closed gate.
func (t *transition) stopBlocking(ctx context.Context) {
	blocking := t.blocking()
	needed := func(n *node) bool {
		return slices.ContainsFunc(blocking, func(m *node) bool { return !m.hasClients() && slices.Contains(m.refs, n) })
	}
	first := slices.DeleteFunc(slices.Clone(blocking), func(n *node) bool { return !n.hasClients() || needed(n) })
	var clients sync.WaitGroup
	for _, n := range first {
		if slices.Contains(t.app.started, n) {
			clients.Go(func() { t.app.retiring.log(n, n.handOver(ctx, briefHandOver)) })
		}
	}
	clients.Wait()
	for _, n := range slices.Backward(first) {
		t.remove(ctx, n)
	}
	for _, n := range slices.Backward(t.from.nodes) {
		switch {
		case t.blocks(n):
			t.remove(ctx, n)
		case n.gate != nil && t.leadsToBlocking(n):
			n.gate.Drain(func() { t.interruptRetries(n) })
		}
	}
}

// remove stops a node unless it has already stopped. An exporter leaves its queue to a replacement
// that uses the same queue. An exporter with a queue in memory is stopped in the background when
// the queue is empty.
func (t *transition) remove(ctx context.Context, n *node) {
	running := t.app.removeStarted(n)
	n.ended.Store(true)
	queueStays := t.edgeStays(n)
	if queueStays {
		n.edge.Gate().Drain(func() { t.interruptRetries(n) })
	}
	if !running {
		return
	}
	t.app.states.enter(n, status.Stopped)
	switch {
	case queueStays:
		t.stop(ctx, n, stopComponent)
	case n.edge != nil && n.edge.LosesSpans():
		t.app.retiring.emptyQueue(n)
	default:
		t.stop(ctx, n, stopSafely)
	}
	if n.gate != nil {
		n.gate.Open(refuseAll{}) // for calls that the component did not wait for
	}
}

// interruptInterval is the time between interruptions of retries while a component stops.
const interruptInterval = 2 * time.Second

// stop stops a component. It allows the full stop timeout, because the replacement may need the
// same resources. A stop waits for current calls, so stop interrupts their retries.
func (t *transition) stop(ctx context.Context, n *node, stop func(context.Context, *node) error) {
	ctx, cancel := t.app.stopContext(ctx)
	defer cancel()
	ticker := time.NewTicker(interruptInterval)
	defer ticker.Stop()
	done := make(chan error, 1)
	go func() { done <- stop(ctx, n) }()
	for {
		select {
		case <-ticker.C:
			t.interruptRetries(n)
		case err := <-done:
			t.app.retiring.log(n, err)
			return
		}
	}
}

// refuseAll is the Consumer behind stopped components.
type refuseAll struct{}

// Consume returns ErrStopping.
func (refuseAll) Consume(context.Context, *otlpdata.Batch) error { return pipeline.ErrStopping }

// interruptRetries makes calls inside or behind a node that wait for a retry return with the error
// of the last attempt.
func (t *transition) interruptRetries(n *node) {
	if n.edge != nil {
		n.edge.InterruptRetries()
	}
	for _, way := range n.next {
		i := slices.IndexFunc(t.from.nodes, func(m *node) bool { return m.consumer == way.To && m.intake == nil })
		if i >= 0 {
			t.interruptRetries(t.from.nodes[i])
		}
	}
}

// startNew starts new nodes and opens closed gates.
func (t *transition) startNew(ctx context.Context) error {
	for _, n := range t.to.nodes {
		if left := t.to.connect(n, t.app.metrics.delivery); left != nil {
			t.left = append(t.left, left)
		}
		if slices.Contains(t.app.started, n) {
			continue
		}
		t.app.states.enter(n, status.Starting)
		if err := t.app.startNode(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// retire stops the running nodes that are not in the new graph in the background. If the successors
// of a receiver have been stopped, its unfinished requests are passed to its replacement's
// successors.
func (t *transition) retire() {
	nodes := slices.DeleteFunc(slices.Clone(t.from.nodes), func(n *node) bool {
		return t.to.has(n) || !slices.Contains(t.app.started, n)
	})
	for _, n := range nodes {
		t.app.removeStarted(n)
		n.ended.Store(true)
		if n.gate != nil && n.gate.IsClosed() {
			n.leadTo(t.to.next[t.to.find(n.config.Key)], t.app.metrics.delivery)
		}
	}
	t.app.retiring.begin(nodes, t.left)
}

// run makes the transition. If a node cannot be started, it makes a transition back to previous,
// the running configuration. It returns the graph that is running afterwards. If the transition
// back fails as well, the error wraps errBroken.
func (t *transition) run(ctx context.Context, previous *config.Config) (now *graph, err error) {
	if err := t.app.retiring.awaitSlot(ctx, t.earlierCallers()); err != nil {
		return t.from, err
	}
	defer func() { t.app.sockets.withdraw(now) }()
	if err = t.once(ctx); err == nil {
		return t.to, nil
	}
	stay := slices.DeleteFunc(slices.Clone(t.from.nodes), func(n *node) bool { return t.to.has(n) || !slices.Contains(t.app.started, n) })
	both := t.to.with(stay)
	back, failed := buildGraph(t.app, previous, both.survivors(t.app.started))
	if failed != nil {
		t.abandon(ctx, t.from, t.to)
		return t.to, fmt.Errorf("%w; %w: %w", err, errBroken, failed)
	}
	if failed = (&transition{app: t.app, from: both, to: back, left: t.left}).once(ctx); failed != nil {
		t.abandon(ctx, t.from, t.to, back)
		return back, fmt.Errorf("%w; %w: %w", err, errBroken, failed)
	}
	return back, err
}

// once makes the transition, or fails before it has stopped components in the background.
func (t *transition) once(ctx context.Context) error {
	t.app.sockets.offer(t.from, t.to)
	t.stopBlocking(ctx)
	if err := t.startNew(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	t.retire()
	return nil
}

// abandon opens closed gates, so that waiting callers are refused, and stops queues without an
// exporter.
func (t *transition) abandon(ctx context.Context, graphs ...*graph) {
	for _, g := range graphs {
		for _, n := range g.nodes {
			if n.gate != nil {
				refuseWaiting(n.gate)
			}
			running := slices.Contains(t.app.started, n)
			if n.edge == nil || running || !refuseWaiting(n.edge.Gate()) {
				continue
			}
			if n.edge.Started() {
				t.stop(ctx, n, func(ctx context.Context, n *node) error { return n.edge.Stop(ctx) })
			}
		}
	}
}

// refuseWaiting opens a gate, if it is closed, so that waiting callers are refused.
func refuseWaiting(g *delivery.Gate) (wasClosed bool) {
	if !g.IsClosed() {
		return false
	}
	g.Open(refuseAll{})
	return true
}

// errBroken is wrapped by errors after which components of the previous configuration are missing.
var errBroken = errors.New("previous configuration could not be restored")
