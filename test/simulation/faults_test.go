package simulation_test

import (
	"time"
)

// happen lets a fault happen, and returns when it is over.
func (f fault) happen(w *world) {
	n := w.nodes()[f.index]
	switch f.kind {
	case partition, slowLink, refusal:
		f.disturb(w)
	case cut:
		w.net.Cut(f.a, f.b, f.bytes)
	case restart:
		f.restart(w, n)
	case clockJump:
		n.ahead.Store(int64(f.jump))
	case reload:
		f.reload(w, n)
	case badSync:
		if f.spoil(n); f.jump > 0 { // what was acknowledged after the failure must be on the disk all the same
			f.restart(w, n)
		}
	default:
		f.spoil(n)
	}
}

// disturb changes a link for a while.
func (f fault) disturb(w *world) {
	c := w.plan.calm
	switch f.kind {
	case partition:
		c.Down = true
	case slowLink:
		c.Rate, c.Delay = 2000, c.Delay+100*time.Millisecond
	case refusal:
		c.Refuse = true
	}
	w.net.Set(f.a, f.b, c)
	time.Sleep(f.length)
	w.net.Set(f.a, f.b, w.plan.calm)
}

// spoil makes a disk fail for a while.
func (f fault) spoil(n *node) {
	n.mu.Lock()
	l := n.life
	n.mu.Unlock()
	if l == nil {
		return
	}
	switch f.kind {
	case fullDisk:
		l.disk.during(&l.disk.full, f.length)
	case badDisk:
		l.disk.during(&l.disk.broken, f.length/4)
	case badSync:
		l.disk.failOnce(f.length / 5)
	case hungDisk:
		l.disk.hang(f.length)
	}
}

// strikeAnyway is when a program dies that does not use its disk.
const strikeAnyway = time.Second

// restart ends a program and starts it again.
func (f fault) restart(w *world, n *node) {
	l := n.take()
	if l == nil {
		return
	}
	defer n.release()
	first := f.deaths[0]
	if first.how == stopped {
		if first.after%3 == 0 { // killed while it stops
			l.arm(deathblow{kill, first.after / 2, first.seed})
		}
		l.stop() //nolint:errcheck // it may be struck, and its collector away
	} else {
		l.arm(first)
		select {
		case <-l.ended:
		case <-time.After(strikeAnyway):
			l.strike(first.how)
		}
	}
	f.revive(n)
}

// revive starts a program again, some time after its end.
func (f fault) revive(n *node) {
	n.mu.Lock()
	n.life = nil
	n.mu.Unlock()
	time.Sleep(f.length)
	n.boot(f.deaths[1:]...)
}
