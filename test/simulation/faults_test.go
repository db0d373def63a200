package simulation_test

import (
	"time"
)

// inject injects a fault, and returns when it is over.
func (f fault) inject(w *world) {
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
		if f.breakDisk(n); f.jump > 0 { // spans acknowledged after the failure must still be on the disk
			f.restart(w, n)
		}
	default:
		f.breakDisk(n)
	}
}

// disturb changes the conditions of a link for a while.
func (f fault) disturb(w *world) {
	c := w.plan.conditions
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
	w.net.Set(f.a, f.b, w.plan.conditions)
}

// breakDisk makes the disk of a node fail for a while.
func (f fault) breakDisk(n *node) {
	n.mu.Lock()
	l := n.current
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

// crashAnyway is the time after which a program crashes even if it does not use its disk.
const crashAnyway = time.Second

// restart ends a program and restarts it after a while.
func (f fault) restart(w *world, n *node) {
	l := n.acquire()
	if l == nil {
		return
	}
	defer n.release()
	first := f.ends[0]
	if first.how == stopped {
		if first.after%3 == 0 { // kill it while it stops
			l.arm(plannedEnd{kill, first.after / 2, first.seed})
		}
		l.stop() //nolint:errcheck // fails if the program is killed or its collector is down
	} else {
		l.arm(first)
		select {
		case <-l.ended:
		case <-time.After(crashAnyway):
			l.crash(first.how)
		}
	}
	f.startAgain(n)
}

// startAgain restarts a program a while after its end.
func (f fault) startAgain(n *node) {
	n.mu.Lock()
	n.current = nil
	n.mu.Unlock()
	time.Sleep(f.length)
	n.boot(f.ends[1:]...)
}
