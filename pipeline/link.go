package pipeline

import (
	"context"
	"sync"
	"time"

	"github.com/tracing-backend/tracing/pipeline/otlpdata"
)

// link is a place of the graph where what comes next can be exchanged while spans flow: behind each receiver and processor, and in front of
// each exporter. While it is shut, callers wait, and none is refused.
type link struct {
	mu     sync.Mutex
	next   Consumer
	turn   int           // how often next was exchanged
	inside int           // calls that have not returned
	opened chan struct{} // closed when it opens again; nil: it is open
	empty  chan struct{} // closed when inside is 0; nil: nobody waits for that
}

// Consume passes on, waiting while the link is shut, but not longer than ctx.
func (l *link) Consume(ctx context.Context, b *otlpdata.Batch) error {
	next, _, err := l.enter(ctx)
	if err != nil {
		return err
	}
	defer l.leave()
	return next.Consume(ctx, b)
}

func (l *link) enter(ctx context.Context) (next Consumer, turn int, err error) {
	for {
		l.mu.Lock()
		opened := l.opened
		if opened == nil {
			l.inside++
			next, turn = l.next, l.turn
			l.mu.Unlock()
			return next, turn, nil
		}
		l.mu.Unlock()
		select {
		case <-opened:
		case <-ctx.Done():
			return nil, 0, context.Cause(ctx)
		}
	}
}

func (l *link) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inside--
	if l.inside == 0 && l.empty != nil {
		close(l.empty)
		l.empty = nil
	}
}

// shut lets no call begin any more. The channel is closed when all that had begun have returned.
func (l *link) shut() (empty <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.opened == nil {
		l.opened = make(chan struct{})
	}
	c := make(chan struct{})
	if l.inside == 0 {
		close(c)
		return c
	}
	l.empty = c
	return c
}

// open lets all who wait, and who come, call next.
func (l *link) open(next Consumer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next = next
	l.turn++
	if l.opened != nil {
		close(l.opened)
		l.opened = nil
	}
}

func (l *link) isShut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.opened != nil
}

// refusers returns the part of what comes next that refused a batch with err, see refusersOf.
func (l *link) refusers(err error) Consumer {
	l.mu.Lock()
	next, turn := l.next, l.turn
	l.mu.Unlock()
	if part := refusersOf(next, err); part != next {
		return &linkPart{link: l, turn: turn, part: part}
	}
	return l
}

// linkPart is a part of what is behind a link, or all of it once that was exchanged: a branch may then get spans twice, and none is left out.
type linkPart struct {
	link *link
	turn int
	part Consumer
}

// Consume passes on.
func (p *linkPart) Consume(ctx context.Context, b *otlpdata.Batch) error {
	next, turn, err := p.link.enter(ctx)
	if err != nil {
		return err
	}
	defer p.link.leave()
	if turn == p.turn {
		next = p.part
	}
	return next.Consume(ctx, b)
}

// drainPatience is how long calls are waited for, before senders are asked to hurry and once more after that. Who is inside a component that is
// stopped then gets its outcome from the stop.
const drainPatience = 2 * time.Second

// drain shuts the link and waits, but not for ever, until nobody is inside.
func (l *link) drain(hurry func()) {
	empty := l.shut()
	if within(drainPatience, empty) {
		return
	}
	hurry()
	within(drainPatience, empty)
}
