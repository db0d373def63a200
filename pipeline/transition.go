package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// transition replaces the graph that runs by another one under the feet of what stays:
//
//	shut and drain what stays and leads to what goes, from the receivers on; stop what goes
//	start what comes, the far end first; connect what stays to it and let the spans flow again
//
// Callers that come meanwhile wait at a shut link. A component of which only the settings have changed is stopped before its successor is
// started: both may want the same port or folder.
type transition struct {
	app      *App
	from, to *graph
}

// empty reports whether nothing is to be done.
func (t *transition) empty() bool {
	gone := func(n *node) bool { return !t.to.has(n) }
	different := func(n *node) bool {
		return !t.from.has(n) || !t.to.leads(n) || t.from.collects[n] != t.to.collects[n]
	}
	return !slices.ContainsFunc(t.from.nodes, gone) && !slices.ContainsFunc(t.to.nodes, different)
}

// clear stops what goes. Receivers are the first in this order, and their links the first to be shut: behind a link that is drained, none is shut.
func (t *transition) clear(ctx context.Context) {
	for _, n := range slices.Backward(t.from.nodes) {
		switch {
		case !t.to.has(n):
			t.end(ctx, n)
		case !t.to.leads(n):
			n.out.drain(func() { t.hurry(n) })
		}
	}
}

// end stops a component that goes. An exporter whose successor has the same queue leaves the queue to it; one that keeps spans in memory is
// stopped when it has sent them, however long that takes, and nobody waits for it.
func (t *transition) end(ctx context.Context, n *node) {
	running := t.app.forget(n)
	n.ended.Store(true)
	inherited := n.edge != nil && t.to.hasEdge(n.edge)
	if inherited {
		n.edge.gate.drain(func() { t.hurry(n) })
	}
	if !running {
		return
	}
	t.app.status.enter(n.String(), StateStopped)
	switch {
	case inherited:
		t.stop(ctx, n, stopValue)
	case n.edge != nil && n.edge.holdsSpans():
		t.app.retiring.begin(t.app, n)
	default:
		t.stop(ctx, n, stopSafely)
	}
	if n.out != nil {
		n.out.open(nowhere{}) // for calls that it has left behind
	}
}

// stop stops a component, and gives it all the time that a stop may take: what it leaves behind its successor may need. It waits for calls that are
// inside, so those that wait for another attempt are made to go.
func (t *transition) stop(ctx context.Context, n *node, stop func(context.Context, *node) error) {
	ctx, cancel := t.app.stopContext(ctx)
	defer cancel()
	hurry := time.NewTicker(drainPatience)
	defer hurry.Stop()
	done := make(chan error, 1)
	go func() { done <- stop(ctx, n) }()
	for {
		select {
		case <-hurry.C:
			t.hurry(n)
		case err := <-done:
			if err != nil {
				t.app.log.Error("a component that is not needed any more did not stop cleanly", zap.Stringer("stopped", n), zap.Error(err))
			}
			return
		}
	}
}

// nowhere is where the spans of stopped components go.
type nowhere struct{}

// Consume refuses.
func (nowhere) Consume(context.Context, *otlpdata.Batch) error { return ErrStopping }

// hurry makes callers behind a node that wait for another attempt to send their spans go, with the error of the last one.
func (t *transition) hurry(n *node) {
	if n.edge != nil && n.edge.queue == nil && n.edge.sender != nil {
		n.edge.sender.interrupt()
	}
	for _, c := range n.next {
		i := slices.IndexFunc(t.from.nodes, func(m *node) bool { return m.consumer == c && m.intake == nil })
		if i >= 0 {
			t.hurry(t.from.nodes[i])
		}
	}
}

// fill starts what comes, and opens what was shut.
func (t *transition) fill(ctx context.Context) error {
	for _, n := range t.to.nodes {
		t.to.connect(n, t.app.log)
		if slices.Contains(t.app.started, n) {
			continue
		}
		t.app.status.enter(n.String(), StateStarting)
		if err := t.app.startNode(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// run makes the transition, or, when something cannot be started, one back to what config describes. It returns the graph that runs then; if
// that was not possible either, with an error that matches errBroken.
func (t *transition) run(ctx context.Context, config *Config) (now *graph, err error) {
	if err = t.once(ctx); err == nil {
		return t.to, nil
	}
	back, failed := buildGraph(t.app, config, t.to.survivors(t.app.started))
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
	t.clear(ctx)
	return t.fill(context.WithoutCancel(ctx))
}

// abandon refuses all who wait at a link that will not be opened again, and stops the queues that nobody is behind.
func (t *transition) abandon(ctx context.Context, graphs ...*graph) {
	for _, g := range graphs {
		for _, n := range g.nodes {
			running := slices.Contains(t.app.started, n)
			if n.out != nil && n.out.isShut() {
				n.out.open(nowhere{})
			}
			if n.edge == nil || running || !n.edge.gate.isShut() {
				continue
			}
			n.edge.gate.open(nowhere{})
			if n.edge.started {
				t.stop(ctx, n, func(ctx context.Context, n *node) error { return n.edge.stop(ctx) })
			}
		}
	}
}

// errBroken says that the process has lost components.
var errBroken = errors.New("what ran before could not be started again")
