package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/internal/config"
	"github.com/tracing-backend/tracing/pipeline/internal/delivery"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
	"github.com/tracing-backend/tracing/pipeline/status"
)

// transition replaces the running graph by another one while nodes that are in both keep running:
//
//  1. From the receivers on: stop nodes that are not in the new graph, and close and drain the
//     gates that lead to them.
//  2. From the exporters on: start new nodes, connect nodes to their new successors, and open the
//     gates.
//
// Meanwhile, callers wait at closed gates. A component whose settings have changed is stopped
// before its replacement is started, because both may need the same port or folder.
type transition struct {
	app      *App
	from, to *graph
}

// empty reports whether the graphs have the same nodes and connections.
func (t *transition) empty() bool {
	removed := func(n *node) bool { return !t.to.has(n) }
	changed := func(n *node) bool {
		return !t.from.has(n) || !t.to.connected(n) || t.from.collects[n] != t.to.collects[n]
	}
	return !slices.ContainsFunc(t.from.nodes, removed) && !slices.ContainsFunc(t.to.nodes, changed)
}

// stopRemoved stops nodes that are not in the new graph, and drains gates that lead to other nodes
// in it. It begins with the receivers, so that no call that it waits for is held up at a closed
// gate.
func (t *transition) stopRemoved(ctx context.Context) {
	for _, n := range slices.Backward(t.from.nodes) {
		switch {
		case !t.to.has(n):
			t.remove(ctx, n)
		case !t.to.connected(n):
			n.gate.Drain(func() { t.interruptRetries(n) })
		}
	}
}

// remove stops a node. An exporter whose replacement uses the same queue leaves the queue to the
// replacement. An exporter with a queue in memory is stopped in the background when the queue is
// empty.
func (t *transition) remove(ctx context.Context, n *node) {
	running := t.app.removeStarted(n)
	n.ended.Store(true)
	queueStays := n.edge != nil && t.to.hasEdge(n.edge)
	if queueStays {
		n.edge.Gate().Drain(func() { t.interruptRetries(n) })
	}
	if !running {
		return
	}
	t.app.states.enter(n.String(), status.Stopped)
	switch {
	case queueStays:
		t.stop(ctx, n, stopComponent)
	case n.edge != nil && n.edge.LosesSpans():
		t.app.retiring.begin(t.app, n)
	default:
		t.stop(ctx, n, stopSafely)
	}
	if n.gate != nil {
		n.gate.Open(refuseAll{}) // for calls that the component has left behind
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
			if err != nil {
				t.app.log.Error(msgRemovedUncleanly, zap.Stringer("stopped", n), zap.Error(err))
			}
			return
		}
	}
}

// msgRemovedUncleanly is logged when the Stop of a component that was removed returns an error.
const msgRemovedUncleanly = "a removed component did not stop cleanly"

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
	for _, c := range n.next {
		i := slices.IndexFunc(t.from.nodes, func(m *node) bool { return m.consumer == c && m.intake == nil })
		if i >= 0 {
			t.interruptRetries(t.from.nodes[i])
		}
	}
}

// startNew starts new nodes and opens closed gates.
func (t *transition) startNew(ctx context.Context) error {
	for _, n := range t.to.nodes {
		t.to.connect(n, t.app.log)
		if slices.Contains(t.app.started, n) {
			continue
		}
		t.app.states.enter(n.String(), status.Starting)
		if err := t.app.startNode(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// run makes the transition. If a node cannot be started, it makes a transition back to previous,
// the running configuration. It returns the graph that runs afterwards. If the transition back
// fails as well, the error wraps errBroken.
func (t *transition) run(ctx context.Context, previous *config.Config) (now *graph, err error) {
	if err = t.once(ctx); err == nil {
		return t.to, nil
	}
	back, failed := buildGraph(t.app, previous, t.to.survivors(t.app.started))
	if failed != nil {
		t.abandon(ctx, t.from, t.to)
		return t.to, fmt.Errorf("%w; %w: %w", err, errBroken, failed)
	}
	if failed = (&transition{app: t.app, from: t.to, to: back}).once(ctx); failed != nil {
		t.abandon(ctx, t.from, t.to, back)
		return back, fmt.Errorf("%w; %w: %w", err, errBroken, failed)
	}
	return back, err
}

func (t *transition) once(ctx context.Context) error {
	t.stopRemoved(ctx)
	return t.startNew(context.WithoutCancel(ctx))
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
