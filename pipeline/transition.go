package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
			n.out.drain(t.hurry)
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
		n.edge.gate.drain(t.hurry)
	}
	if !running {
		return
	}
	t.app.status.enter(n.String(), StateStopped)
	var err error
	switch {
	case inherited:
		err = stopValue(ctx, n)
	case n.edge != nil && n.edge.holdsSpans():
		t.app.retiring.begin(t.app, n)
	default:
		err = stopSafely(ctx, n)
	}
	if err != nil {
		t.app.log.Error("a component that is not needed any more did not stop cleanly", zap.Stringer("stopped", n), zap.Error(err))
	}
	if n.out != nil {
		n.out.open(nowhere{}) // for calls that it has left behind
	}
}

// nowhere is where the spans of stopped components go.
type nowhere struct{}

// Consume refuses.
func (nowhere) Consume(context.Context, *otlpdata.Batch) error { return ErrStopping }

// hurry makes callers that wait for another attempt to send their spans go, with the error of the last one.
func (t *transition) hurry() {
	for _, n := range t.from.nodes {
		if n.edge != nil && n.edge.queue == nil && n.edge.sender != nil {
			n.edge.sender.interrupt()
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

// run makes the transition, or, when something cannot be started, one back to what config describes. Then it returns an error that matches
// errBroken if that was not possible either.
func (t *transition) run(ctx context.Context, config *Config) (now *graph, err error) {
	if err = t.once(ctx); err == nil {
		return t.to, nil
	}
	back, failed := buildGraph(t.app, config, t.to.survivors(t.app.started))
	if failed == nil {
		failed = (&transition{app: t.app, from: t.to, to: back}).once(ctx)
	}
	if failed != nil {
		return t.to, fmt.Errorf("%w; %w: %w", err, errBroken, failed)
	}
	return back, err
}

func (t *transition) once(ctx context.Context) error {
	stop, cancel := t.app.stopContext(ctx)
	defer cancel()
	t.clear(stop)
	return t.fill(context.WithoutCancel(ctx))
}

// errBroken says that the process has lost components.
var errBroken = errors.New("what ran before could not be started again")
