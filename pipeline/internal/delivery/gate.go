package delivery

import (
	"context"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline"
	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// Gate is a Consumer whose next Consumer can be replaced while spans flow: there is one after each
// receiver and processor, and one before each exporter. While a gate is closed, callers wait; none
// is refused. The zero Gate is open, but must be opened with a Consumer before it is used.
type Gate struct {
	mu         sync.Mutex
	next       pipeline.Consumer
	generation int           // number of times that next was set
	inside     int           // number of calls that have not returned
	opened     chan struct{} // closed when the gate opens; nil if it is open
	empty      chan struct{} // closed when inside becomes 0; nil if nothing waits for that
}

// Consume passes b to the next Consumer. While the gate is closed, it waits until ctx ends.
func (g *Gate) Consume(ctx context.Context, b *otlpdata.Batch) error {
	next, _, err := g.enter(ctx)
	if err != nil {
		return err
	}
	defer g.leave()
	return next.Consume(ctx, b)
}

func (g *Gate) enter(ctx context.Context) (next pipeline.Consumer, generation int, err error) {
	for {
		g.mu.Lock()
		opened := g.opened
		if opened == nil {
			g.inside++
			next, generation = g.next, g.generation
			g.mu.Unlock()
			return next, generation, nil
		}
		g.mu.Unlock()
		select {
		case <-opened:
		case <-ctx.Done():
			return nil, 0, context.Cause(ctx)
		}
	}
}

func (g *Gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.inside == 0 && g.empty != nil {
		close(g.empty)
		g.empty = nil
	}
}

// close closes the gate. The returned channel is closed when all calls inside have returned.
func (g *Gate) close() (empty <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		g.opened = make(chan struct{})
	}
	c := make(chan struct{})
	if g.inside == 0 {
		close(c)
		return c
	}
	g.empty = c
	return c
}

// Open sets the next Consumer and opens the gate if it is closed.
func (g *Gate) Open(next pipeline.Consumer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next = next
	g.generation++
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
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

// Refusing returns the part of the next Consumer that refused a batch with err.
func (g *Gate) Refusing(err error) pipeline.Consumer {
	g.mu.Lock()
	next, generation := g.next, g.generation
	g.mu.Unlock()
	if part := refusing(next, err); part != next {
		return &gatePart{gate: g, generation: generation, part: part}
	}
	return g
}

// gatePart passes batches to a part of the Consumer behind a gate. If that Consumer has been
// replaced since, it passes them to the whole new one: a branch may then get spans twice, but none
// misses any.
type gatePart struct {
	gate       *Gate
	generation int
	part       pipeline.Consumer
}

// Consume passes b on.
func (p *gatePart) Consume(ctx context.Context, b *otlpdata.Batch) error {
	next, generation, err := p.gate.enter(ctx)
	if err != nil {
		return err
	}
	defer p.gate.leave()
	if generation == p.generation {
		next = p.part
	}
	return next.Consume(ctx, b)
}

// Refusing returns the part of p that refused a batch with err.
func (p *gatePart) Refusing(err error) pipeline.Consumer {
	return &gatePart{p.gate, p.generation, refusing(p.part, err)}
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
