package delivery

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Gate is a Consumer whose next Consumer can be replaced while spans flow: there is one after each
// receiver and processor, and one before each exporter. While a gate is closed, callers wait; no
// call is refused. The zero Gate is open, but must be opened with a Consumer before it is used.
type Gate struct {
	mu     sync.Mutex
	way    *way
	opened chan struct{} // closed when the gate opens; nil if it is open
}

// way is what a gate leads to until it is opened with another Consumer.
type way struct {
	next   pipeline.Consumer
	inside int           // number of calls that have not returned
	empty  chan struct{} // closed when inside becomes 0; nil if nothing waits for that
}

// Consume passes b to the next Consumer. While the gate is closed, it waits until ctx ends.
func (g *Gate) Consume(ctx context.Context, b *otlpdata.Batch) error {
	w, err := g.enter(ctx)
	if err != nil {
		return err
	}
	defer g.leave(w)
	return w.nextOf(b).Consume(ctx, b)
}

// nextOf returns the next Consumer for a batch.
func (w *way) nextOf(b *otlpdata.Batch) pipeline.Consumer {
	if s, ok := w.next.(*signals); ok {
		return s[b.Meta().Signal]
	}
	return w.next
}

func (g *Gate) enter(ctx context.Context) (*way, error) {
	for {
		g.mu.Lock()
		opened := g.opened
		if opened == nil {
			w := g.way
			w.inside++
			g.mu.Unlock()
			return w, nil
		}
		g.mu.Unlock()
		select {
		case <-opened:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (g *Gate) leave(w *way) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w.inside--
	if w.inside == 0 && w.empty != nil {
		close(w.empty)
		w.empty = nil
	}
}

// whenEmpty returns a channel that is closed when all calls that use the way have returned. It is
// called with the lock of the gate, when no calls can enter the way.
func (w *way) whenEmpty() <-chan struct{} {
	if w != nil && w.empty != nil {
		return w.empty
	}
	c := make(chan struct{})
	if w == nil || w.inside == 0 {
		close(c)
		return c
	}
	w.empty = c
	return c
}

// close closes the gate. The returned channel is closed when all calls inside have returned.
func (g *Gate) close() (empty <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		g.opened = make(chan struct{})
	}
	return g.way.whenEmpty()
}

// Open sets the next Consumer and opens the gate if it is closed. Calls inside continue with the
// previous Consumer; the returned channel is closed when they have returned.
func (g *Gate) Open(next pipeline.Consumer) (left <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	left = g.way.whenEmpty()
	g.way = &way{next: next}
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
	return left
}

// IsClosed reports whether the gate is closed.
func (g *Gate) IsClosed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened != nil
}

// drainWait is how long Drain waits for calls inside the gate: once before and once after it
// interrupts retries. Calls that take longer return when their component is stopped.
const drainWait = 2 * time.Second

// Drain closes the gate and waits until no call is inside, but not longer than a few seconds. If
// calls do not return soon, it calls interrupt, which should end pauses between retries.
func (g *Gate) Drain(interrupt func()) {
	empty := g.close()
	if waitFor(drainWait, empty) {
		return
	}
	interrupt()
	waitFor(drainWait, empty)
}

// consumeBy passes b to some of the branches behind the gate, or to the next Consumer if that has
// no branches.
func (g *Gate) consumeBy(ctx context.Context, b *otlpdata.Batch, some func(*fanOut) []pipeline.Consumer) error {
	w, err := g.enter(ctx)
	if err != nil {
		return err
	}
	defer g.leave(w)
	next := w.nextOf(b)
	if f, ok := next.(*fanOut); ok {
		return f.consume(ctx, some(f), b)
	}
	return next.Consume(ctx, b)
}

// Refusing returns a Consumer that passes batches to the branches behind the gate that refused a
// batch with err. If these branches have been replaced since, it passes batches to all new ones: a
// branch may then get spans twice, but no branch misses any.
func (g *Gate) Refusing(err error) pipeline.Consumer {
	if by := (*branchError)(nil); errors.As(err, &by) {
		return refusers{g, by}
	}
	return g
}

// refusers passes batches to the branches behind a gate that refused a batch.
type refusers struct {
	*Gate
	refusal *branchError
}

// Consume passes b on. While the gate is closed, it waits until ctx ends.
func (r refusers) Consume(ctx context.Context, b *otlpdata.Batch) error {
	return r.consumeBy(ctx, b, r.refusal.refusersIn)
}

// waitFor waits until done is closed, at most d, and reports whether it was closed.
func waitFor(d time.Duration, done <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}
